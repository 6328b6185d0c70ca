"""The demo: starts both programs, polls the router ten times a second, and shows its routes.

The expected routes come from the code of `waggle render`; the actual ones from the socket of the
router. SIGINT, SIGTERM and SIGHUP (the terminal is closed) end both programs in order.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import io
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live

from cells.api.agent_socket import default_socket
from cells.api.client import AgentError, at_socket
from waggle import output
from waggle.commands.demo.background import Ready, detach
from waggle.commands.demo.examples import Examples, find
from waggle.commands.demo.lock import DemoLock, RunsAlreadyError
from waggle.commands.demo.processes import Child
from waggle.commands.demo.reasons import reasons
from waggle.commands.demo.report import Report
from waggle.commands.demo.view import screen
from waggle.demo_changes import ReceivedRoute, Session, Snapshot, line
from waggle.dialects import DIALECTS
from waggle.output import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, address_order
from waggle.router_config import ConfigError, load

POLL_INTERVAL_SECONDS = 0.1
"""Between two reads of the router's state."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RENDER_INTERVAL_SECONDS = 1.0
"""Between two compilations of the manifests, for the origins of routes, and questions to the agent."""


class DemoError(Exception):
    """The reason why the demo ends, as a sentence."""


class Demo:
    """Both programs and their state."""

    def __init__(self, examples: Examples, node: str, agent_socket: Path, directory: Path) -> None:
        self._examples = examples
        self._node = node
        self._agent_socket = agent_socket
        self._directory = directory
        self._socket = directory / "router.sock"
        self._children: list[Child] = []
        self._origins: dict[str, tuple[str, ...]] = {}
        self._problems: tuple[str, ...] = ()
        self._expected: list[dict[str, Any]] = []
        self._rendered_at = 0.0

    async def start(self) -> None:
        """Start the router, then the agent."""
        try:
            load(self._examples.router)
        except ConfigError as error:
            raise DemoError(str(error)) from None
        config = yaml.safe_load(self._examples.router.read_bytes())
        for listen in config.get("listen", ()):
            _check_free(listen["address"], listen["port"])
        config["apiSocket"] = str(self._socket)
        file = self._directory / "router.yaml"
        file.write_text(yaml.safe_dump(config))
        self._children.append(await Child.start("router", "waggle", ["router", "-c", str(file)]))
        agent = [
            "--manifests",
            str(self._examples.manifests),
            "--node-name",
            self._node,
            "--api-socket",
            str(self._agent_socket),
        ]
        self._children.append(await Child.start("agent", "waggle_agent", agent))

    async def stop(self) -> None:
        """End both, the agent first."""
        for child in reversed(self._children):
            await child.stop()

    def check(self) -> None:
        """Raise `DemoError` when one of them has ended."""
        for child in self._children:
            if child.ended is not None:
                lines = "\n".join(f"  {text}" for text in child.output)
                raise DemoError(f"the {child.name} has ended with status {child.ended}:\n{lines}")

    def render(self) -> None:
        """Compile the manifests to the expected routes; seldom, as all files are read."""
        now = time.monotonic()
        if now - self._rendered_at < RENDER_INTERVAL_SECONDS and self._rendered_at:
            return
        self._rendered_at = now
        # Takes as long as the start of the router, and that is on its way.
        from reconcilers.compile_manifests import OfflineSettings, compile_manifests

        document = compile_manifests(
            [str(self._examples.manifests)], DIALECTS.load(), OfflineSettings(self._node)
        ).whole_document()
        peers = [peer for instance in document["instances"] for peer in instance["peers"]]
        self._expected = [route for peer in peers for route in peer["advertise"]]
        self._origins = {
            route["prefix"]: tuple(output.object_name(origin) for origin in route["origins"])
            for route in self._expected
        }
        # What the agent reports: it may have dialects off, and keep objects that manifests have lost.
        try:
            status = at_socket(self._agent_socket).get("/v1/status", {})
            sessions = at_socket(self._agent_socket).get("/v1/peers", {})
        except AgentError:
            return
        self._problems = reasons(status, sessions, self._examples.manifests, self._node)

    def read(self) -> Snapshot:
        """Read the sessions and routes of the router."""
        try:
            router = at_socket(self._socket, "router")
            # The routes first: a session comes up before them, also if it does so meanwhile.
            routes = router.get("/v1/routes", {"table": "received"})["items"]
            peers = router.get("/v1/peers", {})["items"]
        except AgentError:
            self.render()
            return Snapshot(problems=self._problems)
        if any(route["prefix"] not in self._origins for route in routes):
            self._rendered_at = 0.0  # the manifests have changed since the last compilation
        self.render()
        return Snapshot(
            tuple(
                Session(
                    address=peer["address"],
                    peer_asn=peer.get("peerASN"),
                    state=peer["state"],
                    reason=peer.get("reason", ""),
                )
                for peer in peers
            ),
            tuple(
                ReceivedRoute(
                    prefix=route["prefix"],
                    next_hop=route["nextHop"],
                    as_path=route.get("asPath", ""),
                    communities=tuple(route.get("communities", ())),
                    large_communities=tuple(route.get("largeCommunities", ())),
                    origin_objects=self._origins.get(route["prefix"], ()),
                )
                for route in sorted(routes, key=lambda route: address_order(route["prefix"]))
            ),
            self._problems,
        )

    def complete(self, snapshot: Snapshot) -> bool:
        """Whether the router holds exactly the expected routes."""
        held = {
            route.prefix: (set(route.communities), set(route.large_communities))
            for route in snapshot.routes
        }
        expected = {
            route["prefix"]: (set(route["communities"]), set(route["largeCommunities"]))
            for route in self._expected
        }
        return bool(expected) and held == expected

    def agent_answers(self) -> bool:
        """Whether the agent's socket accepts connections; the first routes may be sent before."""
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(str(self._agent_socket)) == 0


def _check_free(address: str, port: int) -> None:
    """Raise `DemoError` when the address is in use: perhaps by another demo."""
    try:
        socket.create_server((address, port)).close()
    except OSError as error:
        raise DemoError(
            f"the router cannot listen on {address} port {port}: {error.strerror}. End another "
            f"demo that runs, or set another port in the router's file and the manifests."
        ) from None


async def _once(demo: Demo, within: float, stop: asyncio.Event) -> Snapshot | None:
    """Wait until the router holds the expected routes and the agent answers; None if ended before.

    Raises `DemoError` after ``within`` seconds.
    """
    deadline = time.monotonic() + within
    snapshot = Snapshot()
    while not stop.is_set():
        demo.check()
        snapshot = demo.read()
        complete = demo.complete(snapshot)
        if complete and demo.agent_answers():
            return snapshot
        if time.monotonic() >= deadline:
            text = f"after {within:g} s the routes of the router differ from waggle render"
            if complete:
                text = f"after {within:g} s the agent does not answer on its socket"
            raise DemoError("\n".join([text, *_state(snapshot)]))
        await _pause(stop)
    return None


def _state(snapshot: Snapshot) -> Iterator[str]:
    for session in snapshot.sessions:
        yield f"  session {session.address}: {session.state} {session.reason}".rstrip()
    for route in snapshot.routes:
        yield f"  {line(route)}"
    for problem in snapshot.problems:
        yield f"  ! {problem}"


async def _pause(stop: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), POLL_INTERVAL_SECONDS)


def write_picture(snapshot: Snapshot, path: Path) -> None:
    """Write the tables as an SVG picture. Raises `DemoError`."""
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    hint = "Edit examples/quickstart/services.yaml. Ctrl-C ends it."
    console.print(screen(snapshot, hint, width=console.width))
    try:
        console.save_svg(str(path), title="make run")
    except OSError as error:
        raise DemoError(f"--screenshot {path}: {error.strerror}") from None


async def _in_terminal(demo: Demo, console: Console, hint: str, stop: asyncio.Event) -> None:
    """Show the router's state on the whole screen until the demo or the terminal is ended."""
    try:
        await _drawn(demo, console, hint, stop)
    except OSError as error:
        # The terminal is closed. SIGHUP is sent to its first process alone: to make, for example.
        if error.errno != errno.EIO:
            raise


async def _drawn(demo: Demo, console: Console, hint: str, stop: asyncio.Event) -> None:
    """Draw the state again where it or the size has changed. Raises OSError without the terminal."""
    snapshot = before = Snapshot()
    resized = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, resized.set)
    with Live(console=console, auto_refresh=False, screen=True) as live:

        def suspend() -> None:
            # Ctrl-Z: the shell gets its screen back, and fg draws this one again.
            live.stop()
            os.kill(os.getpid(), signal.SIGSTOP)
            live.start()
            resized.set()

        loop.add_signal_handler(signal.SIGTSTP, suspend)
        while not stop.is_set():
            demo.check()
            snapshot = demo.read()
            os.get_terminal_size(console.file.fileno())
            if snapshot != before or resized.is_set():
                width, height = console.size
                live.update(screen(snapshot, hint, width=width, height=height), refresh=True)
            before = snapshot
            resized.clear()
            await _pause(stop)
    # The screen is given back: what was there last stays readable.
    console.print(screen(snapshot, "", width=console.width))


async def _in_lines(demo: Demo, hint: str, report: Report, stop: asyncio.Event) -> None:
    """Print each change of the router's state."""
    report.remark(hint)
    before = Snapshot()
    while not stop.is_set():
        demo.check()
        snapshot = demo.read()
        report.changed(before, snapshot)
        before = snapshot
        await _pause(stop)


async def _in_background(demo: Demo, stop: asyncio.Event) -> None:
    while not stop.is_set():
        demo.check()
        await _pause(stop)


async def _run(args: argparse.Namespace, examples: Examples, report: Report, ready: Ready) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="demo-", dir=args.socket.parent) as directory:
        demo = Demo(examples, args.node, args.socket, Path(directory))
        try:
            await demo.start()
            if args.once or args.detach:
                snapshot = await _once(demo, args.timeout, stop)
                if snapshot is None:
                    return EXIT_INTERRUPTED
                if args.screenshot is not None:
                    write_picture(snapshot, args.screenshot)
                ready(report.answer(snapshot))
                if args.detach:
                    await _in_background(demo, stop)
                return EXIT_OK
            hint = f"Edit {examples.edited} and watch. Ctrl-C ends it."
            console = Console()
            if console.is_terminal and not (console.is_dumb_terminal or report.is_document):
                await _in_terminal(demo, console, hint, stop)
            else:
                await _in_lines(demo, hint, report, stop)
        except DemoError as error:
            report.failed("DemoFailed", str(error))
            return EXIT_ERROR
        finally:
            await demo.stop()
    return EXIT_OK


def _print_answer(answer: str) -> None:
    print(answer, end="", flush=True)


def main(args: argparse.Namespace) -> int:
    """Run the demo, or end the demo that runs; returns the exit status."""
    args.socket = args.socket or default_socket()
    lock = DemoLock(args.socket)
    report = Report(args.output, is_endless=not (args.once or args.detach or args.stop))
    if args.stop:
        return _stop(lock, report)
    if args.screenshot is not None and not (args.once or args.detach):
        report.failed("BadRequest", "--screenshot: with --once or --detach only")
        return EXIT_USAGE
    for path in filter(None, (args.manifests, args.router)):
        if not path.exists():
            report.failed("BadRequest", f"{path}: there is no such file or directory")
            return EXIT_USAGE
    try:
        lock.take()
        examples = find(args.manifests, args.router, args.socket.parent / "examples")
    except RunsAlreadyError as error:
        if args.detach and report.is_document:
            report.occurred(str(error))
        else:
            report.failed("DemoRuns", str(error))
        return EXIT_OK if args.detach else EXIT_ERROR
    except OSError as error:
        report.failed("DemoFailed", f"{error.filename}: {error.strerror}")
        return EXIT_ERROR
    if args.detach:
        return detach(lock, report, lambda ready: asyncio.run(_run(args, examples, report, ready)))
    return asyncio.run(_run(args, examples, report, _print_answer))


def _stop(lock: DemoLock, report: Report) -> int:
    try:
        if lock.stop_holder():
            report.occurred("The demo is ended: the agent and the router.")
            return EXIT_OK
        report.failed("NoDemo", "no demo runs")
    except TimeoutError:
        report.failed("DemoFailed", "the demo does not end; it was sent SIGTERM")
    except OSError as error:
        report.failed("DemoFailed", f"cannot end the demo: {error.strerror}")
    return EXIT_ERROR
