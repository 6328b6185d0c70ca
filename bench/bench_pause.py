"""Time of the speaker's core for one change, by the length of the pause before it.

A prefix of the eleventh peer is advertised to ten peers and withdrawn, with 10,000 prefixes present: P3
of `bench.speed` without a kernel. Measures the cost of cold caches after milliseconds without work.

``python -m bench.bench_pause [--changes N]``
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Literal

from bench.speed import streams
from speaker.api import InstanceConfig, PeerConfig
from speaker.capability import FourOctetAs, Multiprotocol
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    SendUpdates,
    SetInstance,
    SetPeer,
    TransportAccepted,
)
from speaker.message import KEEPALIVE, Open
from speaker.nlri import IPV4_UNICAST
from speaker.peer.actions import Write

PEERS = 10
PRESENT = 10_000
PER_UPDATE = 800
PAUSES_MS = (0.0, 1.0, 5.0, 20.0)
ROUNDS = 4
FEEDER = PEERS + 1


class Bench:
    """An engine with Established sessions and a full table."""

    def __init__(self) -> None:
        self._engine = Engine(random.Random(1))  # noqa: S311  jitter
        self._now = 0.0
        self.give(SetInstance(InstanceConfig(name="bench", local_asn=65000, router_id="10.0.0.1")))
        for number in range(1, FEEDER + 1):
            asn, address = 65000 + number, f"10.0.1.{number}"
            export: Literal["all", "none"] = "none" if number == FEEDER else "all"
            peer = PeerConfig(
                name=address,
                address=address,
                peer_asn=asn,
                passive=True,
                import_="all",
                export=export,
            )
            self.give(SetPeer("bench", peer))
            self.give(TransportAccepted(number, "bench", ("10.0.0.1", 179), (address, 4000)))
            greeting = Open(
                asn=asn,
                hold_time=90,
                router_id=number,
                capabilities=(Multiprotocol(IPV4_UNICAST), FourOctetAs(asn)),
            )
            self.give(BytesReceived(number, greeting.encode()))
            self.give(BytesReceived(number, KEEPALIVE))
        attributes = streams.attributes([65000 + FEEDER], f"10.0.1.{FEEDER}")
        prefixes = [_wire(streams.FIRST_PREFIX + number) for number in range(PRESENT)]
        for start in range(0, PRESENT, PER_UPDATE):
            some = b"".join(prefixes[start : start + PER_UPDATE])
            self.give(BytesReceived(FEEDER, streams.update(b"", attributes, some)))
        ping = _wire(streams.PING_PREFIX)
        self._changes = (
            BytesReceived(FEEDER, streams.update(b"", attributes, ping)),
            BytesReceived(FEEDER, streams.update(ping, b"", b"")),
        )

    def give(self, item: Input) -> int:
        """Handle an input and send the updates; returns the number of writes."""
        actions = self._engine.handle(item, self._now)
        if self._engine.updates_pending:
            actions = self._engine.handle(SendUpdates(), self._now)
        return sum(type(action) is Write for action in actions)

    def change(self, number: int) -> float:
        """Announce (even numbers) or withdraw; returns the time in milliseconds."""
        item = self._changes[number % 2]
        began = time.perf_counter_ns()
        writes = self.give(item)
        took = (time.perf_counter_ns() - began) / 1e6
        if writes != PEERS:
            raise RuntimeError(f"{writes} of {PEERS} peers got an update")
        return took


def _wire(address: int) -> bytes:
    return b"\x20" + address.to_bytes(4, "big")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench.bench_pause", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--changes", type=int, default=200, metavar="N", help="for each pause")
    changes = max(2 * ROUNDS, parser.parse_args().changes)
    bench = Bench()
    took: dict[float, list[float]] = {pause: [] for pause in PAUSES_MS}
    # In turns, so that other load of the machine affects all pauses.
    for _ in range(ROUNDS):
        for pause, times in took.items():
            for number in range(changes // ROUNDS // 2 * 2):
                if pause:
                    time.sleep(pause / 1e3)
                times.append(bench.change(number))
    for pause, times in took.items():
        p99 = statistics.quantiles(times, n=100)[-1]
        print(f"after {pause:2.0f} ms: p50 {statistics.median(times):.3f} ms, p99 {p99:.3f} ms")


if __name__ == "__main__":
    main()
