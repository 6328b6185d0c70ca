"""A changed path that is advertised as before is no UPDATE for other peers."""

from __future__ import annotations

import msgspec
import pytest

from speaker.api import (
    AddPathMode,
    Match,
    PeerConfig,
    Policy,
    RouteAttributes,
    Set,
    Term,
)
from speaker.iana import IPV4_UNICAST, Role
from tests.speaker.network import INSTANCE, Network

BEFORE = RouteAttributes(med=1, local_preference=10)
SEVEN = Policy(terms=(Term(match=Match(communities=("0:7",))),))


@pytest.mark.parametrize("add_path", ["none", "both"])
@pytest.mark.parametrize(
    ("settings", "changed", "updates"),
    [
        # RFC 4271 section 5.1.4: a received MED is not advertised to another AS.
        ({}, {"med": 2}, 0),
        ({}, {"next_hop": "10.0.0.9"}, 0),
        ({}, {"communities": (7,)}, 1),
        ({}, {"med": 2, "communities": (7,)}, 1),
        ({}, {"large_communities": ((1, 2, 3),)}, 1),
        ({"role": Role.ROUTE_SERVER}, {"med": 2}, 1),
        ({"role": Role.ROUTE_SERVER}, {"next_hop": "10.0.0.9"}, 1),
        ({"export_policy": Policy(terms=(Term(set=Set(med=9)),))}, {"med": 2}, 0),
        ({"export_policy": Policy(terms=(Term(set=Set(next_hop="10.0.0.8")),))}, {"med": 2}, 0),
        ({"export_policy": SEVEN}, {"communities": (7,)}, 1),
        ({"export_policy": SEVEN}, {"med": 2}, 0),
    ],
)
def test_a_change_that_is_not_advertised_makes_no_update(
    settings: dict[str, object], changed: dict[str, object], updates: int, add_path: AddPathMode
) -> None:
    network = Network()
    a, b, c = (network.host(f"h{n}", f"10.0.0.{n}", 65000 + n) for n in (1, 2, 3))
    common: dict[str, object] = {"import_": "all", "export": "all", "add_path": add_path}
    for host, neighbours in ((a, (b,)), (b, (a, c)), (c, (b,))):
        for other in neighbours:
            options = {**common, **(settings if other is c else {})}
            host.peer(
                PeerConfig(
                    name=other.name,
                    address=other.address,
                    enforce_first_as=False,
                    **options,  # type: ignore[arg-type]
                )
            )
    a.routes({"10.8.0.0/24": BEFORE})
    network.run(10)
    seen = c.status().updates_received
    after = msgspec.structs.replace(BEFORE, **changed)
    a.routes({"10.8.0.0/24": after})
    network.run(1)
    assert c.status().updates_received - seen == updates
    held = next(iter(b.engine.views.routes_advertised(INSTANCE, "h3", IPV4_UNICAST)), None)
    received = c.received(IPV4_UNICAST).get("10.8.0.0/24")
    assert (held is None) == (received is None)
    if held is not None and received is not None:
        assert (held.med, held.next_hop, held.communities) == (
            received.med, received.next_hop, received.communities,
        )  # fmt: skip


def test_a_local_preference_is_no_update_for_external_peers() -> None:
    network = Network()
    a, b, c = (network.host(f"h{n}", f"10.0.0.{n}", asn) for n, asn in ((1, 1), (2, 2), (3, 1)))
    for other in (b, c):
        a.peer(PeerConfig(name=other.name, address=other.address, export="all"))
        other.peer(PeerConfig(name="h1", address="10.0.0.1", import_="all"))
    a.routes({"10.8.0.0/24": BEFORE})
    network.run(10)
    seen = [host.status().updates_received for host in (b, c)]
    a.routes({"10.8.0.0/24": msgspec.structs.replace(BEFORE, local_preference=20)})
    network.run(1)
    assert [host.status().updates_received for host in (b, c)] == [seen[0], seen[1] + 1]
    # In two steps within one turn, too, of which the first one is advertised.
    network.later(network.now, lambda: a.routes({"10.8.0.0/24": RouteAttributes(med=9)}))
    network.later(network.now, lambda: a.routes({"10.8.0.0/24": BEFORE}))
    network.run(1)
    assert b.available(IPV4_UNICAST)["10.8.0.0/24"].med == 1
