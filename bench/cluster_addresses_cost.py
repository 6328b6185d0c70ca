"""What the addresses of all Nodes cost an API server with agents on 5,000 nodes: requests and octets.

    python -m bench.cluster_addresses_cost [--nodes N] [--changes N]

Computed, not measured: from the size of the object that the operator publishes for so many nodes,
from the times of watches and bookmarks, and from the size and the heartbeats of a Node. Compared are
agents that know their own Node alone, that watch every Node, and that read the published
object.
"""

from __future__ import annotations

import argparse
import json
import random
from typing import Final, NamedTuple

from reconcilers.dialect import ClusterAddresses
from reconcilers.intent.service_addresses import published
from reconcilers.operator.cluster_addresses import LEAST_SECONDS, SECONDS_PER_NODE
from reconcilers.sliced_work import finish
from resources.kubernetes import Timeouts

NODE_OCTETS: Final = 9_000
"""Of a Node as JSON: 50 images, conditions, annotations."""
HEARTBEATS: Final = 12
"""Of one Node in an hour: a kubelet writes an unchanged status every five minutes."""
BOOKMARK_OCTETS: Final = 250
BOOKMARKS: Final = 60
"""Of one watch in an hour."""
HEADERS: Final = 600
"""Octets of a request and of the headers of its answer."""
NAMESPACE_OCTETS: Final = 1_000
"""Of a Namespace as PartialObjectMetadata."""


class Cost(NamedTuple):
    """Of all agents together, in an hour."""

    what: str
    requests: float
    octets: float


def addresses(nodes: int, *, dense: bool) -> ClusterAddresses:
    """Return the addresses of a cluster with both families: from few networks, or at random."""
    rng = random.Random(1)  # noqa: S311
    if dense:
        addresses = {f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(256, 256 + nodes)}
        addresses |= {f"2001:db8::{n:x}" for n in range(256, 256 + nodes)}
    else:
        addresses = {
            f"10.{rng.randrange(256)}.{rng.randrange(256)}.{n & 255}" for n in range(nodes)
        }
        addresses |= {f"2001:db8::{rng.getrandbits(16):x}:{n:x}:1" for n in range(nodes)}
    pods = {f"100.{64 + (n >> 8)}.{n & 255}.0/24" for n in range(nodes)}
    pods |= {f"fd00:{n:x}::/64" for n in range(nodes)}
    return ClusterAddresses(nodes=frozenset(addresses), pods=frozenset(pods))


def octets_of_object(nodes: int, *, dense: bool) -> int:
    """Return the size of the published object as an event of a watch."""
    data = finish(published.encode(addresses(nodes, dense=dense)))
    return len(
        json.dumps({"type": "MODIFIED", "object": published.manifest("waggle-system", data)})
    )


def watch(agents: int) -> tuple[float, float]:
    """Return requests and octets of one watch of each agent, without its objects."""
    timeouts = Timeouts()
    requests = 3600 * 2 / (timeouts.watch_shortest + timeouts.watch_longest)
    return agents * requests, agents * (requests * HEADERS + BOOKMARKS * BOOKMARK_OCTETS)


def costs(nodes: int, changes: int) -> list[Cost]:
    """Return the cost of each way; ``changes`` are Nodes that come or go in an hour."""
    requests, octets = watch(nodes)
    own = nodes * HEARTBEATS * NODE_OCTETS
    costs = [
        Cost("own Node alone", requests, octets + own),
        Cost(
            "every Node (`--always-block auto`)",
            requests,
            octets + nodes * (own + changes * NODE_OCTETS),
        ),
    ]
    writes = min(changes, 3600 / max(LEAST_SECONDS, nodes * SECONDS_PER_NODE))
    for name, dense in (("addresses from few networks", True), ("at random", False)):
        size = octets_of_object(nodes, dense=dense)
        costs.append(
            Cost(
                f"own Node and the published object, {name} ({size / 1000:,.0f} KB)",
                2 * requests,
                2 * octets + own + nodes * writes * size,
            )
        )
    costs.append(
        Cost(
            "Namespaces as metadata, 100 changes", requests, octets + nodes * 100 * NAMESPACE_OCTETS
        )
    )
    return costs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--changes", type=int, default=20)
    args = parser.parse_args()
    print("| agents read | requests | octets |")
    print("| --- | --- | --- |")
    for cost in costs(args.nodes, args.changes):
        amount = f"{cost.octets / 1e9:,.1f} GB"
        print(f"| {cost.what} | {cost.requests:,.0f} | {amount} |")


if __name__ == "__main__":
    main()
