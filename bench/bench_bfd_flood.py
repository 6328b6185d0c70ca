"""BFD sessions while a stranger floods their port: which of them are lost, and what it costs.

In network namespaces of its own, with BIRD at the other end, which is scheduled before ordinary
processes, as it stands for another machine. From its side of the link come packets of BFD as fast as
the machine sends them, half of them from an address that is no neighbor's, half from that of a neighbor
with a TTL below 255: a filter in the kernel drops them. Goals: 200,000 packets a second, no session
lost, and at most a tenth of a processor for the flood. Exit status 1 if one is missed.

``python -m bench.bench_bfd_flood [--sessions N] [--interval MS] [--seconds N]`` (root)
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.bench_bfd import Bird, Setup, Waggle, cpu, give_addresses, prefer
from speaker.bfd.packet import Packet, encode
from speaker.bfd.session_values import State
from speaker.bfd.transport import SINGLE_HOP_PORT
from tests.support.netns import linked_namespaces, unavailable
from tests.support.packet_flood import flood_from, packet
from tests.support.wait import eventually

PACKETS_PER_SECOND: Final = 200_000
PROCESSOR: Final = 0.1
"""Of one, for what the flood costs waggle-bfd."""
STRANGER: Final = "10.99.0.1"
DOWN: Final = encode(
    Packet(
        diagnostic=0,
        state=State.DOWN,
        poll=False,
        final=False,
        independent=False,
        demand=False,
        detect_multiplier=3,
        my_discriminator=1,
        your_discriminator=0,
        desired_min_tx=1_000_000,
        required_min_rx=1_000_000,
        required_min_echo_rx=0,
        authenticated=False,
        octets=b"",
    )
)
"""A first packet, which would end a session if it were the neighbor's."""


def main() -> None:
    """Measure, and print the goals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--interval", type=int, default=50, help="in milliseconds")
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    if (reason := unavailable()) is not None:
        sys.exit(reason)
    setup = Setup(args.sessions, args.interval)
    with (
        linked_namespaces() as link,
        tempfile.TemporaryDirectory(prefix="bench-bfd-") as path,
        contextlib.ExitStack() as stack,
    ):
        give_addresses(link, setup)
        neighbor = Bird(link.right, Path(path) / "neighbor", setup, is_neighbor=True)
        waggle = Waggle(link.left, Path(path) / "waggle", setup)
        for each in (neighbor, waggle):
            each.start()
            stack.callback(each.stop)

        def all_up() -> None:
            assert neighbor.up() == setup.sessions

        eventually(all_up)
        prefer(neighbor.processes())
        time.sleep(2)
        before, processes = neighbor.marks(), waggle.processes()
        at = cpu(processes)
        time.sleep(args.seconds)
        quiet = (cpu(processes) - at) / args.seconds
        ours, theirs = next(setup.pairs())
        packets = [
            packet(source, ours, ttl, SINGLE_HOP_PORT, DOWN)
            for source, ttl in ((STRANGER, 255), (theirs, 254))
        ]
        at = cpu(processes)
        sent = flood_from(link.right, args.seconds, ours, packets)
        flooded = (cpu(processes) - at) / args.seconds
        after = neighbor.marks()
        lost = sum(abs(after.get(address, -1.0) - mark) >= 1 for address, mark in before.items())
    rate = sent / args.seconds
    print(f"{quiet * 100:.1f} % of a processor without, {flooded * 100:.1f} % with the flood")
    goals = (
        (
            f"packets a second: {rate:,.0f} (goal {PACKETS_PER_SECOND:,})",
            rate >= PACKETS_PER_SECOND,
        ),
        (f"lost: {lost} (goal 0)", lost == 0),
        (
            f"processor for the flood: {flooded - quiet:.2f} (goal {PROCESSOR})",
            flooded - quiet <= PROCESSOR,
        ),
    )
    for text, met in goals:
        print(text, "ok" if met else "missed")
    sys.exit(not all(met for _, met in goals))


if __name__ == "__main__":
    main()
