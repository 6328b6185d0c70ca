"""Starts a process again when it dies, with the capabilities that its agent has given up.

The keeper has these capabilities and does nothing but wait: its child, which works, shares its memory.
The next child starts in milliseconds, as it imports nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

from reconcilers.process.log import log

FIRST_PAUSE: Final = 0.05
LAST_PAUSE: Final = 5.0
"""Seconds before the next start, which double with each death in a short time."""
FORGOTTEN: Final = 30.0


def keep(
    work: Callable[[], int],
    name: str,
    *,
    first_pause: float = FIRST_PAUSE,
    forgotten: float = FORGOTTEN,
) -> int:
    """Keep a child process running: start it again while it dies, until it returns 0, or SIGTERM.

    ``name``: of the child, for the log. ``forgotten``: seconds of life after which the next pause is
    the first one.
    """
    pause = first_pause
    child = 0

    def end(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        if child:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)
        os._exit(0)

    while True:
        began = time.monotonic()
        blocked = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            _run(work, name)
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        _, status = os.waitpid(child, 0)
        child = 0
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return 0
        if time.monotonic() - began >= forgotten:
            pause = first_pause
        how = f"status {code}" if code > 0 else f"signal {-code}"
        log("error", f"{name} ended with {how}; it starts again in {pause:g} s")
        time.sleep(pause)
        pause = min(max(2 * pause, FIRST_PAUSE), LAST_PAUSE)


def _run(work: Callable[[], int], name: str) -> NoReturn:
    status = 1
    try:
        status = work()
    except Exception as error:  # noqa: BLE001  its end is reported by the status alone
        log("error", f"{name}: {type(error).__name__}: {error}")
    finally:
        sys.stderr.flush()
        os._exit(status)
