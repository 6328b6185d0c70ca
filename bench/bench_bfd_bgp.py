"""BGP sessions of ``waggle router`` that BFD ends: how late the last of many ends.

In network namespaces of its own: ``waggle router`` with many neighbors and BFD, BIRD at the other end.
Then packets of BFD are dropped, and packets of BGP are not. Measured is the time from the end of the
detection time of each session, three intervals after its last packet arrived at the router's interface,
until its NOTIFICATION (Cease / BFD Down) arrives at BIRD's end; both by the kernel's times.

A packet that arrives while ``nft`` sets the filter is dropped or not: it is the last one unless the
NOTIFICATION comes sooner than three intervals after it. A session that ends an interval after its
detection time, and had a packet in these milliseconds, could be printed as less late than it is; so
each round has the most, too: with the last packet before ``nft`` began.

``python -m bench.bench_bfd_bgp [--sessions N] [--interval MS] [--rounds N]`` (root)
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.bench_bfd import (
    MULTIPLIER,
    Setup,
    give_addresses,
    sniff,
    sniffer,
    stand_for_another_machine,
)
from cells.api.client import AgentError, at_socket
from tests.support.daemon import Daemon
from tests.support.netns import Link, linked_namespaces, unavailable
from tests.support.routers.bird import program
from tests.support.wait import NotReadyError, eventually

PORT: Final = 1790
GOAL_MS: Final = 20.0
MARKER: Final = b"\xff" * 16
BFD_DOWN: Final = bytes([3, 6, 10])
"""NOTIFICATION, Cease, BFD Down."""
PATIENT: Final = 20
"""The multiplier by which BIRD notices a loss: after the router."""
LOSSY: Final = (
    "table ip lossy { chain incoming { type filter hook input priority 0; udp dport 3784 drop; };}"
)
"""At both ends what arrives: packets that a filter drops where BIRD sends them cost the machine a
processor for a second."""


def router(link: Link, directory: Path, setup: Setup) -> Daemon:
    """Return the router with all neighbors."""
    profile = {
        "receiveInterval": setup.interval,
        "transmitInterval": setup.interval,
        "detectMultiplier": PATIENT,
    }
    neighbors = [
        {
            "address": theirs,
            "localAddress": ours,
            "asn": 65002,
            "port": PORT,
            "connectRetryTime": 1,
            "bfd": profile,
        }
        for ours, theirs in setup.pairs()
    ]
    document = {
        "asn": 65001,
        "routerID": "10.0.0.1",
        "listen": [{"address": ours, "port": PORT} for ours, _ in setup.pairs()],
        "apiSocket": str(directory / "api"),
        "neighbors": neighbors,
    }
    file = directory / "router.yaml"
    file.write_text(json.dumps(document))
    command = [sys.executable, "-m", "waggle", "router", "-c", str(file)]
    return Daemon("router", command, log=directory / "log", namespace=link.left)


def bird(link: Link, directory: Path, setup: Setup) -> Daemon:
    """Return BIRD at the other end."""
    options = f"interval {setup.interval} ms; multiplier {MULTIPLIER};"
    text = "router id 10.0.0.2;\nprotocol device {}\n"
    text += f'protocol bfd {{ interface "*" {{ {options} }}; }}\n'
    for number, (ours, theirs) in enumerate(setup.pairs()):
        text += (
            f"protocol bgp p{number} {{ local {theirs} port {PORT} as 65002; "
            f"neighbor {ours} port {PORT} as 65001; strict bind on; bfd on; "
            "connect delay time 1; ipv4 { import none; export none; }; }\n"
        )
    (directory / "bird.conf").write_text(text)
    files = ("-c", directory / "bird.conf", "-s", directory / "control")
    command: list[str | Path] = [program() or "bird", "-f", *files, "-P", directory / "pid"]
    return Daemon("bird", command, log=directory / "bird.log", namespace=link.right)


class Late(NamedTuple):
    """How many milliseconds after the end of its detection time a session ended."""

    by: float
    most: float
    """If a packet that came while the filter was set was dropped."""


def measure(setup: Setup) -> list[Late]:
    """Return how late each session ended, in order."""
    with (
        linked_namespaces() as link,
        tempfile.TemporaryDirectory(prefix="bench-bfd-") as path,
        contextlib.ExitStack() as stack,
    ):
        directory = Path(path)
        give_addresses(link, setup)
        ours, theirs = router(link, directory, setup), bird(link, directory, setup)
        for daemon in (ours, theirs):
            daemon.start()
            stack.callback(daemon.stop)

        def all_up() -> None:
            try:
                items = at_socket(directory / "api", "router").get("/v1/peers", {})["items"]
            except AgentError as error:
                raise NotReadyError(str(error)) from None
            states = [(item["state"], item.get("bfd")) for item in items]
            assert states == [("Established", "Up")] * setup.sessions

        eventually(all_up, within=120, context=ours.tail)
        time.sleep(3)
        seen, heard = sniffer(link.right), sniffer(link.left)
        time.sleep(4 * setup.interval / 1000)
        link.right.run("nft", LOSSY)
        begun = time.time()
        link.left.run("nft", LOSSY)
        cut = time.time()
        detection = MULTIPLIER * setup.interval / 1000
        ends = notifications(seen, 2 + detection)
        # They have waited in the socket: reading them meanwhile would cost the machine time.
        packets = sniff(heard, 0.1)
        for each in (seen, heard):
            os.close(each)
        assert len(ends) == setup.sessions, f"{len(ends)} sessions ended"
        return sorted(
            late(at, packets[pair[4:] + pair[:4]], detection, begun, cut)
            for pair, at in ends.items()
        )


def late(at: float, packets: Sequence[float], detection: float, begun: float, cut: float) -> Late:
    """Return how late a session ended, by the times of the packets that arrived.

    ``begun`` and ``cut``: before and after the filter was set.
    """
    last = max(time for time in packets if time < cut and time + detection <= at)
    before = max(time for time in packets if time < begun)
    return Late((at - last - detection) * 1000, (at - before - detection) * 1000)


def notifications(descriptor: int, seconds: float) -> dict[bytes, float]:
    """Return when the first Cease / BFD Down of each pair of addresses arrived, by the kernel."""
    ends: dict[bytes, float] = {}
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        until = time.monotonic() + seconds
        sock.settimeout(0.1)
        while time.monotonic() < until:
            try:
                octets, ancillary, *_ = sock.recvmsg(256, 64)
            except TimeoutError:
                continue
            if octets[9] != socket.IPPROTO_TCP:
                continue
            payload = octets[20 + 4 * (octets[32] >> 4) :]
            if payload[:16] == MARKER and payload[18:21] == BFD_DOWN:
                second, nano = struct.unpack("=qq", ancillary[0][2])
                ends.setdefault(octets[12:20], second + nano / 1e9)
    return ends


def main() -> None:
    """Measure some times, and print medians; exit status 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--interval", type=int, default=50, help="in milliseconds")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if (reason := unavailable()) is not None:
        sys.exit(reason)
    stand_for_another_machine()
    lasts: list[float] = []
    for number in range(args.rounds):
        ends = measure(Setup(args.sessions, args.interval))
        lasts.append(ends[-1].by)
        print(
            f"round {number + 1}: first {ends[0].by:.1f}, "
            f"median {statistics.median(each.by for each in ends):.1f}, "
            f"last {ends[-1].by:.1f} ms after its detection time "
            f"(at most {max(each.most for each in ends):.1f})",
            flush=True,
        )
    last = statistics.median(lasts)
    print(f"last: {last:.1f} ms (goal {GOAL_MS:.0f}) {'ok' if last <= GOAL_MS else 'missed'}")
    sys.exit(last > GOAL_MS)


if __name__ == "__main__":
    main()
