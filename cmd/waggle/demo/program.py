"""The demo: starts both programs, polls the router ten times a second, and shows its routes.

The expected routes come from the code of `waggle render`; the actual ones from the socket of the
router.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live

from reconcilers.offline import OfflineSettings, render
from waggle.demo.processes import Child
from waggle.demo.view import ReceivedRoute, Session, Snapshot, changes, line, screen
from waggle.dialects import DIALECTS
from waggle.router.client import request

POLL_INTERVAL_SECONDS = 0.1
"""Between two reads of the router's state."""
RENDER_INTERVAL_SECONDS = 1.0
"""Between two compilations of the manifests, for the origins of routes."""


class DemoError(Exception):
    """The reason why the demo ends, as a sentence."""


class Demo:
    """Both programs and their state."""

    def __init__(self, args: argparse.Namespace, directory: Path) -> None:
        self._args = args
        self._directory = directory
        self._socket = directory / "router.sock"
        self._children: list[Child] = []
        self._origins: dict[str, str] = {}
        self._problems: tuple[str, ...] = ()
        self._expected: list[dict[str, Any]] = []
        self._rendered_at = 0.0

    async def start(self) -> None:
        """Start the router, then the agent."""
        config = yaml.safe_load(self._args.router.read_text())
        for listen in config.get("listen", ()):
            _check_free(listen["address"], listen["port"])
        config["apiSocket"] = str(self._socket)
        file = self._directory / "router.yaml"
        file.write_text(yaml.safe_dump(config))
        self._children.append(await Child.start("router", "waggle", ["router", "-c", str(file)]))
        agent = [
            "--manifests",
            str(self._args.manifests),
            "--node-name",
            self._args.node,
            "--api-socket",
            str(self._directory / "agent.sock"),
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
        document = render(
            [str(self._args.manifests)], DIALECTS.load(), OfflineSettings(self._args.node)
        )
        peers = [peer for instance in document["instances"] for peer in instance["peers"]]
        self._expected = [route for peer in peers for route in peer["advertise"]]
        self._origins = {
            route["prefix"]: " ".join(
                "/".join(filter(None, (o["kind"], o["namespace"], o["name"])))
                for o in route["origins"]
            )
            for route in self._expected
        }
        self._problems = tuple(
            ": ".join(filter(None, (*p["objects"][:1], p["field"], p["message"])))
            for p in document["problems"]
        )

    def read(self) -> Snapshot:
        """Read the sessions and routes of the router."""
        try:
            peers = request(self._socket, {"op": "peers"})["peers"]
            routes = request(self._socket, {"op": "routes", "table": "received"})["routes"]
        except OSError:
            return Snapshot(problems=self._problems)
        if any(route["prefix"] not in self._origins for route in routes):
            self._rendered_at = 0.0  # the manifests have changed since the last compilation
        self.render()
        return Snapshot(
            tuple(Session(p["address"], p["asn"], p["state"], p["reason"]) for p in peers),
            tuple(
                ReceivedRoute(
                    r["prefix"],
                    r["nextHop"],
                    r["asPath"],
                    tuple(r["communities"]),
                    tuple(r["largeCommunities"]),
                    self._origins.get(r["prefix"], ""),
                )
                for r in sorted(routes, key=_address_order)
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


def _address_order(route: dict[str, Any]) -> tuple[int, int, int]:
    network = ipaddress.ip_network(route["prefix"])
    return network.version, int(network.network_address), network.prefixlen


def _check_free(address: str, port: int) -> None:
    """Raise `DemoError` when the address is in use: perhaps by another demo."""
    try:
        socket.create_server((address, port)).close()
    except OSError as error:
        raise DemoError(
            f"the router cannot listen on {address} port {port}: {error.strerror}. End another "
            f"demo that runs, or set another port in the router's file and the manifests."
        ) from None


async def _once(demo: Demo, args: argparse.Namespace) -> int:
    deadline = time.monotonic() + args.timeout
    snapshot = Snapshot()
    while time.monotonic() < deadline:
        demo.check()
        snapshot = demo.read()
        if demo.complete(snapshot):
            for route in snapshot.routes:
                print(line(route))
            if args.screenshot is not None:
                _picture(snapshot, args.screenshot)
            return 0
        await asyncio.sleep(POLL_INTERVAL_SECONDS)
    print(
        f"after {args.timeout:g} s the routes of the router are not those of waggle render",
        file=sys.stderr,
    )
    for session in snapshot.sessions:
        print(f"session {session.address}: {session.state} {session.reason}", file=sys.stderr)
    for route in snapshot.routes:
        print(line(route), file=sys.stderr)
    return 1


def _picture(snapshot: Snapshot, path: Path) -> None:
    with path.with_suffix(".txt").open("w") as sink:
        console = Console(record=True, width=100, file=sink, force_terminal=True)
        console.print(screen(snapshot, "Edit examples/quickstart/services.yaml. Ctrl-C ends it."))
        console.save_svg(str(path), title="make run")
    path.with_suffix(".txt").unlink()


async def _live(demo: Demo, args: argparse.Namespace) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    console = Console()
    hint = f" Edit {args.manifests / 'services.yaml'} and watch. Ctrl-C ends it."
    before = Snapshot()
    with contextlib.ExitStack() as stack:
        live: Live | None = None
        if console.is_terminal:
            live = stack.enter_context(Live(console=console, auto_refresh=False, transient=False))
        else:
            print(hint.strip(), flush=True)
        while not stop.is_set():
            demo.check()
            snapshot = demo.read()
            if snapshot != before or live is not None:
                if live is not None:
                    live.update(screen(snapshot, hint), refresh=snapshot != before)
                else:
                    for text in changes(before, snapshot):
                        print(text, flush=True)
                before = snapshot
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), POLL_INTERVAL_SECONDS)
    return 0


async def _run(args: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="waggle-") as directory:
        demo = Demo(args, Path(directory))
        try:
            await demo.start()
            return await (_once if args.once else _live)(demo, args)
        except DemoError as error:
            print(f"waggle demo: {error}", file=sys.stderr)
            return 1
        finally:
            await demo.stop()


def main(args: argparse.Namespace) -> int:
    """Run the demo; returns the exit status."""
    for path in (args.manifests, args.router):
        if not path.exists():
            print(f"waggle demo: {path}: there is no such file or directory", file=sys.stderr)
            return 2
    return asyncio.run(_run(args))
