"""``waggle-operator`` once its settings are loaded: it runs until it is stopped."""

from __future__ import annotations

import asyncio
import signal

import structlog

from cells.hive.hive import Hive


def run(hive: Hive) -> None:
    """Run the operator until SIGTERM, SIGINT or SIGHUP; raises what makes it fail."""
    asyncio.run(_run(hive))


async def _run(hive: Hive) -> None:
    loop = asyncio.get_running_loop()
    # SIGHUP: the terminal is closed. It has no file to read again.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, hive.shutdown)
    if not hive.settings.enabled["logging"]:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(100))
    await hive.run()
