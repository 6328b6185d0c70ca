"""Time of the operator with RouteAdvertisements: 1,000 nodes, 50 networks, 10 objects.

Times are CPU times of one process, the median of several changes. Writes are what the API server would
get: objects that differ from what is stored.

``python -m bench.bench_ovnk [--nodes N] [--networks N] [--advertisements N]``
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    DEFAULT_NETWORK,
    Cluster,
    advertisements,
    attachment,
    node,
    source,
)

T = TypeVar("T")
CHANGES: Final = 11
FIRST_PASS_SECONDS: Final = 5.0
CHANGE_SECONDS: Final = 0.02
"""The most that a first pass, and a change of one node, may take."""


def main() -> int:
    """Measure and print; the exit status is 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(
        prog="bench.bench_ovnk", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--nodes", type=int, default=1000, metavar="N")
    parser.add_argument("--networks", type=int, default=50, metavar="N")
    parser.add_argument("--advertisements", type=int, default=10, metavar="N")
    args = parser.parse_args()
    parts = args.advertisements - 1
    cluster = Cluster(source(), *_advertisements(parts))
    cluster.put(*(_network(i, i % parts + 1) for i in range(args.networks)))
    cluster.put(*(_node(i, args.networks) for i in range(args.nodes)))
    gc.collect()
    seconds, intent = _timed(cluster.operate)
    missed = _row("first pass", seconds, FIRST_PASS_SECONDS, len(intent.outdated))
    cluster.put(*(generated.content for generated in intent.generated))
    cluster.restart()
    seconds, intent = _timed(cluster.operate)
    missed |= _row("after a restart", seconds, FIRST_PASS_SECONDS, len(intent.outdated))
    times, written = [], set()
    for change in range(CHANGES):
        cluster.put(_node(change, args.networks, moved=True))
        seconds, intent = _timed(cluster.operate)
        times.append(seconds)
        written.add(len(intent.outdated))
        cluster.put(*(generated.content for generated in intent.generated))
        cluster.operate()
    missed |= _row("an annotation of one node", statistics.median(times), CHANGE_SECONDS, *written)
    return missed


def _advertisements(parts: int) -> list[dict[str, Any]]:
    """Return RouteAdvertisements of the default network, and of each part of the other networks."""
    rows = [advertisements("ra0", networkSelectors=[DEFAULT_NETWORK])]
    for number in range(1, parts + 1):
        selector = {"matchLabels": {"part": str(number)}}
        row = {
            **CLUSTER_NETWORKS,
            "clusterUserDefinedNetworkSelector": {"networkSelector": selector},
        }
        rows.append(advertisements(f"ra{number}", networkSelectors=[row]))
    return rows


def _network(number: int, part: int) -> dict[str, Any]:
    subnets = f"100.{64 + number}.0.0/16/26"
    return attachment(f"n{number}", subnets, labels={"part": str(part)}, number=str(number + 1))


def _node(number: int, networks: int, *, moved: bool = False) -> dict[str, Any]:
    host = f"{number // 4}.{number % 4 * 64}"
    subnets = {f"cluster_udn_n{i}": [f"100.{64 + i}.{host}/26"] for i in range(networks)}
    default = f"10.{200 if moved else 128}.{number % 250}.0/24"
    address = f"10.90.{number // 250}.{number % 250 + 1}/16"
    return node(f"w{number:04}", {"default": [default], **subnets}, address)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def _row(what: str, seconds: float, limit: float, *written: int) -> int:
    verdict = "met" if seconds <= limit else "MISSED"
    counts = " or ".join(map(str, sorted(written)))
    sys.stdout.write(
        f"{what}: {seconds * 1000:.0f} ms of CPU (limit {limit * 1000:g}, {verdict}), "
        f"{counts} objects written\n"
    )
    return int(seconds > limit)


if __name__ == "__main__":
    sys.exit(main())
