"""Route servers (RFC 7947): transparent towards their clients, whose first AS is not enforced."""

from __future__ import annotations

import pytest

from speaker.api import PeerConfig, RouteAttributes
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Role
from tests.speaker.network import Host, Network

SERVER = "10.0.0.100"
ROUTES = {"10.9.0.0/24": RouteAttributes(med=7), "fd00:9::/48": RouteAttributes(med=8)}


def exchange(
    network: Network, *, server: Role | None = Role.ROUTE_SERVER, **client: object
) -> tuple[Host, list[Host]]:
    """A server and two clients, ``client`` being their settings."""
    hub = network.host("rs", SERVER, 65100)
    clients = []
    for number in (1, 2):
        host = network.host(f"c{number}", f"10.0.0.{number}", 65000 + number)
        hub.peer(
            PeerConfig(
                name=host.name,
                address=host.address,
                peer_asn=65000 + number,
                passive=True,
                import_="all",
                export="all",
                role=server,
            )
        )
        host.peer(
            PeerConfig(
                name="rs",
                address=SERVER,
                peer_asn=65100,
                import_="all",
                export="all",
                **client,  # type: ignore[arg-type]
            )
        )
        clients.append(host)
    clients[0].routes(ROUTES)
    network.run(3)
    assert all(host.status().established for host in clients)
    return hub, clients


def test_rfc7947_2_2_a_route_server_leaves_as_path_next_hop_and_med_unchanged() -> None:
    _, (_, client) = exchange(Network(), role=Role.ROUTE_SERVER_CLIENT)
    route = client.available(IPV4_UNICAST)["10.9.0.0/24"]
    assert (route.as_path, route.next_hop, route.med) == ("65001", "10.0.0.1", 7)
    route = client.available(IPV6_UNICAST)["fd00:9::/48"]
    assert (route.as_path, route.next_hop, route.med) == ("65001", "::ffff:10.0.0.1", 8)


NO_EXPORT, NO_ADVERTISE, NO_EXPORT_SUBCONFED = 0xFFFFFF01, 0xFFFFFF02, 0xFFFFFF03
NON_TRANSITIVE = bytes.fromhex("4002fde900000001")


@pytest.mark.parametrize("community", [NO_EXPORT, NO_ADVERTISE, NO_EXPORT_SUBCONFED])
def test_rfc7947_2_2_4_a_route_server_passes_communities_on(community: int) -> None:
    network = Network()
    _, (source, client) = exchange(network, role=Role.ROUTE_SERVER_CLIENT)
    sent = RouteAttributes(communities=(community,), extended_communities=(NON_TRANSITIVE,))
    source.routes({"10.9.1.0/24": sent})
    network.run(1)
    route = client.available(IPV4_UNICAST)["10.9.1.0/24"]
    assert len(route.communities) == 1
    assert route.extended_communities == (NON_TRANSITIVE.hex(),)


def test_without_the_role_a_received_no_export_is_not_advertised_to_another_as() -> None:
    network = Network()
    _, (source, client) = exchange(network, server=None)
    source.routes({"10.9.1.0/24": RouteAttributes(communities=(NO_EXPORT,))})
    network.run(1)
    assert "10.9.1.0/24" not in client.available(IPV4_UNICAST)


def test_the_own_routes_of_a_route_server_have_its_as_and_next_hop() -> None:
    network = Network()
    hub, (_, client) = exchange(network, role=Role.ROUTE_SERVER_CLIENT)
    hub.routes({"10.100.0.0/24": RouteAttributes(med=3)})
    network.run(1)
    route = client.available(IPV4_UNICAST)["10.100.0.0/24"]
    assert (route.as_path, route.next_hop, route.med) == ("65100", SERVER, 3)


@pytest.mark.parametrize(
    ("settings", "accepted"),
    [
        ({"role": Role.ROUTE_SERVER_CLIENT}, True),
        ({"enforce_first_as": False}, True),
        ({}, False),
        ({"role": Role.ROUTE_SERVER_CLIENT, "enforce_first_as": True}, False),
    ],
)
def test_rfc7947_2_2_2_1_a_client_accepts_another_first_as(
    settings: dict[str, object], accepted: bool
) -> None:
    _, (_, client) = exchange(Network(), **settings)  # type: ignore[arg-type]
    assert ("10.9.0.0/24" in client.available(IPV4_UNICAST)) is accepted
    assert ("fd00:9::/48" in client.available(IPV6_UNICAST)) is accepted


def test_routes_with_another_first_as_are_seen_in_the_status() -> None:
    network = Network()
    _, (source, client) = exchange(network)
    status = client.status()
    assert (status.malformed_updates, [one.received for one in status.families]) == (2, [0, 0])
    assert status.malformed == (
        "AS_PATH: the first AS is 65001, the peer's is 65100; for a route server switch "
        "enforce-first-AS off (treat-as-withdraw)"
    )
    assert (source.status().malformed_updates, source.status().malformed) == (0, "")


def test_without_the_role_the_as_is_prepended_and_the_next_hop_is_self() -> None:
    _, (_, client) = exchange(Network(), server=None)
    route = client.available(IPV4_UNICAST)["10.9.0.0/24"]
    assert (route.as_path, route.next_hop, route.med) == ("65100 65001", SERVER, None)
