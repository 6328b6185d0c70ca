"""``waggle-agent`` once its settings are loaded: it runs the agent, or prints its cells."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog
import uvloop

from cells.api.agent_socket import default_path
from cells.api.client import AgentError, at_socket
from cells.api.model import ReconcilerItem
from cells.apply.api import reconciler_item
from cells.apply.show import lines
from cells.declarations import NO_NET_ADMIN
from cells.hive import Cell, Readiness, Settings
from cells.hive.hive import Hive
from cells.hive.show import CellView, dot, tree, views, with_wiring
from cells.options import ApiOptions
from reconcilers.target import Runner
from speaker.server import (
    MemoryRelease,
    abandon_memory,
    bound_collections,
    postpone_collections,
    settle_memory,
)
from waggle import output
from waggle_agent.reload import Reload

T = TypeVar("T")

POSTPONED_COLLECTIONS_SECONDS: Final = 30.0
"""For how long a start collects no memory at most."""

log = structlog.get_logger("waggle.agent")


def run(
    hive: Hive, read: Callable[[], Settings], hung_up: Callable[[], bool] | None = None
) -> None:
    """Run the agent until SIGTERM or SIGINT; raises what makes it fail.

    ``read`` reads the settings again, at SIGHUP. ``hung_up``: see `cells.hangup`.
    """
    try:
        uvloop.run(_run(hive, read, hung_up))
    finally:
        abandon_memory()


def print_cells(cells: Sequence[Cell], settings: Settings, form: str) -> None:
    """Print the tree of the cells with the health of an agent that runs, a document, or the graph."""
    if form == "dot":
        print(dot(views(cells, settings)))
        return
    # Builds the cells to report errors of the start, without starting them.
    Hive(cells, settings)
    declared = views(cells, settings)
    running = _running(settings, "/v1/cells", CellView)
    shown = declared if running is None else with_wiring(running, declared)
    if output.is_document(form):
        output.dump(output.document("CellList", msgspec.to_builtins(shown)), form)
    else:
        print(tree(shown))


def print_reconcilers(cells: Sequence[Cell], settings: Settings, form: str) -> None:
    """Print the reconcilers in their order, with the state of an agent that runs."""
    runner = Hive(cells, settings).get(Runner)
    known = _running(settings, "/v1/reconcilers", ReconcilerItem)
    items = known or [reconciler_item(report) for report in runner.reports()]
    if output.is_document(form):
        output.dump(output.document("ReconcilerList", msgspec.to_builtins(items)), form)
    else:
        print(lines(items))


def _running(settings: Settings, path: str, kind: type[T]) -> list[T] | None:
    """Return the items of the agent that runs with these settings; None if no agent runs."""
    options = settings.options["api"]
    socket = Path(options.socket) if isinstance(options, ApiOptions) and options.socket else None
    try:
        answer = at_socket(socket or default_path()).get(path, {})
    except AgentError:
        return None
    return [msgspec.convert(item, kind) for item in answer["items"]]


async def _run(
    hive: Hive, read: Callable[[], Settings], hung_up: Callable[[], bool] | None
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_unhandled)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hive.shutdown)
    reload = Reload(hive, read)
    loop.add_signal_handler(signal.SIGHUP, reload.request)
    if hung_up is not None and hung_up():
        reload.request()
    if not hive.settings.enabled["logging"]:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(100))
    bound_collections()
    _postpone_collections(hive.readiness)

    def started() -> None:
        reason = hive.settings.reasons.get("kernel")
        if reason == NO_NET_ADMIN:
            log.info(
                "received routes are not installed in the kernel",
                event_name="kernel.off",
                reason=reason,
            )
        if not any(hive.settings.enabled[source] for source in ("manifests", "kubernetes")):
            log.warning(
                "no source of objects, so no route will be advertised: "
                "set --kubeconfig FILE or --manifests DIR",
                event_name="agent.no_source",
            )

    reloading = asyncio.create_task(reload.run())
    try:
        await hive.run(started)
    finally:
        reloading.cancel()


def _postpone_collections(readiness: Readiness) -> None:
    """Collect no memory until the first peer has its routes: what a start reads mostly remains."""
    postpone_collections()
    memory = MemoryRelease()
    late = asyncio.get_running_loop().call_later(POSTPONED_COLLECTIONS_SECONDS, settle_memory)

    def serving() -> None:
        late.cancel()
        settle_memory()
        # What the lists were decoded from is free, and still the process's.
        memory.schedule()

    readiness.when_serving(serving)


def _unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.error(
        "unhandled error in the event loop",
        event_name="agent.unhandled",
        what=context.get("message"),
        exc_info=context.get("exception"),
    )
