"""The running router: one speaker and its API, until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from cells.serve.api_socket import ApiSocket
from cells.unix_socket import UnixSocketError
from resources.enumeration import counted, enumerate_objects
from speaker.api import (
    CollectorChanged,
    ConnectionsRefused,
    Event,
    Fault,
    ListenChanged,
    PrefixLimit,
    RecordingEnded,
    RouteLeftOut,
    SessionError,
    StateChanged,
)
from speaker.server import MemoryRelease, Speaker, abandon_memory, bound_collections, settle_memory
from waggle.commands.router.api import api_socket
from waggle.commands.router.log import RouterLog
from waggle.commands.router.redistribution import KernelOriginated
from waggle.commands.router.reload import Changes, apply, changes_between, steps
from waggle.router_config import Config, ConfigError, load

if TYPE_CHECKING:
    from cells.api.model import BfdItem
    from waggle.commands.router.bfd import RouterBfd
    from waggle.commands.router.kernel import RouterKernel
    from waggle.commands.router.reload import AnyPeer

    Change = Callable[[Config, Config, Changes], Iterator[None]]


def main(
    path: Path,
    config: Config,
    *,
    restarted: bool,
    record: Path | None,
    record_limit: int,
    log_format: str,
    hung_up: Callable[[], bool] | None = None,
) -> int:
    """Run until SIGTERM or SIGINT, and reload the file at SIGHUP; the exit status.

    ``config`` is what the file at ``path`` contains.
    ``restarted``: the neighbours retain the routes of a predecessor (RFC 4724). ``record`` and its
    limit in octets: see `speaker.server.Speaker`. ``log_format``: see `RouterLog`. ``hung_up``: see
    `cells.hangup`.
    """
    log = RouterLog(log_format)
    events = Events(config, MemoryRelease(), log)
    speaker = Speaker(
        on_event=events, restarting=restarted, record=record, record_limit=record_limit
    )
    try:
        return uvloop.run(_logged(log, _main(path, config, speaker, events, hung_up)))
    finally:
        abandon_memory()


class Events:
    """Logs events of sessions, and the listening addresses.

    The memory of a large session is released after its end.
    """

    def __init__(self, config: Config, memory: MemoryRelease, log: RouterLog | None = None) -> None:
        self.log = log or RouterLog()
        self._memory = memory
        self._followers: list[Callable[[Event], None]] = []
        self.configured(config)

    def follow(self, follower: Callable[[Event], None]) -> None:
        """Pass all events on."""
        self._followers.append(follower)

    def configured(self, config: Config) -> None:
        """Use the names of a configuration."""
        self.name = f"waggle router AS {config.asn} ({config.router_id})"

    def __call__(self, event: Event) -> None:
        """Log an event."""
        log = self.log
        for follower in self._followers:
            follower(event)
        match event:
            case ListenChanged(address=address, port=port, error=None):
                text = f"{self.name} listens on {address} port {port}"
                log.started(text, address=address, port=port)
            case ListenChanged(error=error):
                log(str(error), level="error")
            case StateChanged(new="Established"):
                log("Established", level="info", peer=event.peer)
            case StateChanged(old="Established"):
                self._memory.session_ended(event.routes)
                log(f"{event.new}: {event.reason}", peer=event.peer)
            case SessionError(peer=peer, text=text, survived=True):
                log(text, peer=peer)
            case SessionError(peer=peer, sent=sent, text=text):
                log(f"{'sent' if sent else 'received'} {text}", peer=peer)
            case PrefixLimit(peer=peer, family=family, received=received, limit=limit, ended=False):
                prefixes = counted(received, "prefix", "prefixes")
                log(f"{prefixes} of {family} received, the limit is {limit}", peer=peer)
            case CollectorChanged(name=name, connected=connected, reason=reason):
                level = "info" if connected else "warning"
                log(f"collector {name}: {'connected' if connected else reason}", level=level)
            case ConnectionsRefused(address=address, reason=reason, count=count):
                log(f"refused {address}: {reason} ({count} so far)")
            case RouteLeftOut(peers=peers, prefix=prefix, reason=reason, count=count):
                text = f"{prefix} is not advertised: {reason} ({count} so far)"
                log(text, peer=enumerate_objects(peers))
            case RecordingEnded(reason=reason):
                log(f"the recording has ended: {reason}")
            case Fault(where=where, error=error):
                log(f"internal error {where}: {error}", level="error")
            case _:
                pass


class NeighborBfd:
    """BFD of the file's neighbours; what it takes is imported with the first of them."""

    def __init__(self, speaker: Speaker, events: Events) -> None:
        self._speaker = speaker
        self._events = events
        self._sessions: RouterBfd | None = None

    def configured(self, config: Config) -> None:
        """Set the sessions of a file."""
        if self._sessions is None:
            if all(neighbor.bfd is None for neighbor in config.neighbors):
                return
            from waggle.commands.router.bfd import RouterBfd

            self._sessions = RouterBfd(self._speaker, self._events.log)
            self._events.follow(self._sessions.event)
            self._sessions.configured(config)
            self._sessions.start()
        else:
            self._sessions.configured(config)

    def held(self, peer: AnyPeer) -> AnyPeer:
        """Return a neighbour as the speaker has it: down while it waits for BFD."""
        return peer if self._sessions is None else self._sessions.held(peer)

    def items(self, peer: str | None, instance: str | None) -> list[BfdItem]:
        """Return the sessions as the API has them."""
        return [] if self._sessions is None else self._sessions.items(peer, instance)

    async def stop(self) -> None:
        """End the sessions: their neighbours keep BGP, which is ended by itself."""
        if self._sessions is not None:
            await self._sessions.stop()


async def _logged(log: RouterLog, running: Coroutine[Any, Any, int]) -> int:
    await log.start()
    try:
        return await running
    finally:
        await log.stop()


async def _main(
    path: Path,
    config: Config,
    speaker: Speaker,
    events: Events,
    hung_up: Callable[[], bool] | None,
) -> int:
    stopped = asyncio.Event()
    hangup = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, hangup.set)
    if hung_up is not None and hung_up():
        hangup.set()
    bfd = NeighborBfd(speaker, events)
    kernel = _kernel(speaker, config, events)
    api = _api(config, events.log, speaker, bfd, kernel)
    try:
        # Before the socket of the API, which is another router's if this one must not run.
        speaker.reserve()
        if api is not None:
            api.reserve()
            # Clients that connect from now on are answered once the speaker runs.
            api.listen()
        await speaker.start()
    except UnixSocketError as error:
        events.log(f"apiSocket: {error}", level="error")
        await speaker.stop()
        return 1
    except OSError as error:
        events.log(f"--record {error.filename}: {error.strerror}", level="error")
        if api is not None:
            await api.stop()
        return 1
    if kernel is not None:
        await kernel.start()
    redistributed = KernelOriginated(speaker, events.log)
    await redistributed.read(config)

    def change(before: Config, after: Config, changes: Changes) -> Iterator[None]:
        _prepare(bfd, kernel, after)
        return steps(speaker, before, after, changes, redistributed.configure, bfd.held)

    _prepare(bfd, kernel, config)
    apply(speaker, None, config, redistributed.configure, bfd.held)
    if not config.listen:
        events.log.started(f"{events.name} runs without a listening address")
    bound_collections()
    settle_memory()
    tasks = [asyncio.create_task(_reload_at(hangup, path, config, events, change))]
    if api is not None:
        await api.start()
    await stopped.wait()
    await bfd.stop()
    for task in tasks:
        task.cancel()
    redistributed.stop()
    if kernel is not None:
        # Before the sessions: their routes stay.
        await kernel.stop()
    if api is not None:
        await api.stop()
    await speaker.stop()
    return 0


def _api(
    config: Config,
    log: RouterLog,
    speaker: Speaker,
    bfd: NeighborBfd,
    kernel: RouterKernel | None,
) -> ApiSocket | None:
    """Return the socket of the API, if the file has one."""
    if config.api_socket is None:
        return None

    def reported(trouble: str) -> None:
        if trouble:
            log(f"apiSocket: {trouble}", level="error")
        else:
            log("apiSocket: requests are answered again", level="info")

    return api_socket(Path(config.api_socket), reported, speaker, bfd, kernel)


def _kernel(speaker: Speaker, config: Config, events: Events) -> RouterKernel | None:
    """Return what installs received routes in the kernel, if the file has it."""
    options = config.fib()
    if options is None:
        return None
    from waggle.commands.router.kernel import RouterKernel

    kernel = RouterKernel(speaker, options, events.log)
    events.follow(kernel.event)
    return kernel


def _prepare(bfd: NeighborBfd, kernel: RouterKernel | None, config: Config) -> None:
    """Take a file; call it before the speaker has its neighbours."""
    bfd.configured(config)
    if kernel is not None:
        kernel.configure(config)


async def _reload_at(
    hangup: asyncio.Event,
    path: Path,
    config: Config,
    events: Events,
    change: Change,
) -> None:
    """Apply the file's differences at each SIGHUP; an invalid file changes nothing."""
    while True:
        await hangup.wait()
        hangup.clear()
        try:
            # A file may have many prefixes: the sessions go on while it is read.
            after = await asyncio.to_thread(load, path, config)
        except ConfigError as error:
            *others, last = error.sentences
            for sentence in (*others, f"{last}: nothing is changed"):
                events.log(sentence, level="error")
            continue
        for key, differs in (
            ("apiSocket", after.api_socket != config.api_socket),
            ("kernel", after.fib() != config.fib()),
            (
                "selectionDeferralTime",
                after.instance().selection_deferral_time
                != config.instance().selection_deferral_time,
            ),
        ):
            if differs:
                events.log(f"{path}: {key}: takes effect at the next start")
        events.configured(after)
        try:
            # Compared and parsed in a thread, too.
            changes = await asyncio.to_thread(changes_between, config, after)
            for _ in change(config, after, changes):
                # The sessions go on, with the UPDATEs of these prefixes.
                await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001  the next reload has to find its task
            text = f"{path}: internal error: {type(error).__name__}: {error}"
            events.log(text, level="error")
            continue
        config = after
        events.log(f"{path}: reloaded", level="info")
