"""The effect of a changed configuration on the session: the table, row by row."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from speaker.api import (
    BfdProfile,
    Confederation,
    GracefulRestart,
    InstanceConfig,
    InstanceImport,
    MaximumPrefixes,
    PeerConfig,
    Policy,
    RouteAttributes,
    Secret,
    StateChanged,
)
from speaker.engine.effect_of_change import Effect, effect_of
from speaker.engine.inputs import SetInstance
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Role
from speaker.rib.update_group import UpdateBatch, UpdateGroup
from tests.speaker.network import INSTANCE, Host, Network

A, B = "10.0.0.1", "10.0.0.2"
BASE = PeerConfig(name="b", address=B, peer_asn=65002, route_set="one")

ROWS: list[tuple[dict[str, object], Effect]] = [
    ({}, Effect.NONE),
    ({"connect_retry_time": 5}, Effect.NONE),
    ({"idle_hold_time": 5}, Effect.NONE),
    ({"route_set": "two"}, Effect.SOFT),
    ({"export": "all"}, Effect.SOFT),
    ({"import_": "all"}, Effect.SOFT),
    ({"import_": Policy()}, Effect.SOFT),
    ({"keep_received": 10}, Effect.SOFT),
    ({"export_policy": Policy()}, Effect.SOFT),
    ({"hold_time": 30}, Effect.RESET),
    ({"keepalive_time": 10}, Effect.RESET),
    ({"graceful_restart": GracefulRestart(60)}, Effect.RESET),
    ({"password": Secret("x")}, Effect.RESET),
    ({"families": (IPV4_UNICAST,)}, Effect.RESET),
    ({"add_path": "both"}, Effect.RESET),
    ({"ebgp_multihop": 5}, Effect.RESET),
    ({"local_address": A}, Effect.RESET),
    ({"local_asn": 64999}, Effect.RESET),
    ({"port": 1179}, Effect.RESET),
    ({"ttl_security": 1}, Effect.RESET),
    ({"delay_open_time": 3}, Effect.RESET),
    ({"role": Role.CUSTOMER}, Effect.RESET),
    ({"role": Role.CUSTOMER, "role_strict": True}, Effect.RESET),
    ({"enforce_first_as": False}, Effect.RESET),
    ({"allowas_in_origin": True}, Effect.RESET),
    ({"allowas_in": 2}, Effect.RESET),
    ({"maximum_prefixes": (MaximumPrefixes(9),)}, Effect.SOFT),
    ({"passive": True}, Effect.RESET),
    ({"next_hop_ipv4": "10.0.0.9"}, Effect.SOFT),
    ({"next_hop_ipv6": "fd00::1"}, Effect.SOFT),
    ({"default_next_hop_ipv4": "10.0.0.9"}, Effect.SOFT),
    ({"default_next_hop_ipv6": "fd00::1"}, Effect.SOFT),
    ({"local_port": 1179}, Effect.RESET),
    ({"disabled_reason": "no Secret"}, Effect.RESET),
    ({"disabled_for_a_while": True}, Effect.RESET),
    ({"bfd": BfdProfile()}, Effect.NONE),
    ({"address": "10.0.0.3"}, Effect.REPLACE),
    ({"peer_asn": 65003}, Effect.REPLACE),
    ({"interface": "eth0"}, Effect.REPLACE),
]


@pytest.mark.parametrize(("change", "effect"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_a_change_has_the_effect_of_its_row(change: dict[str, object], effect: Effect) -> None:
    assert effect_of(BASE, msgspec.structs.replace(BASE, **change)) is effect


def test_the_table_has_a_row_for_every_setting() -> None:
    assert {field for change, _ in ROWS for field in change} | {"name"} == set(
        PeerConfig.__struct_fields__
    )


@dataclasses.dataclass
class Pair:
    """Two routers with a session, the first of which is changed."""

    network: Network
    a: Host
    b: Host

    def change(self, **change: object) -> tuple[int, bytes]:
        """Change the peer; how often its session was lost, and what was written meanwhile."""
        self.a.sent()
        flaps = self.b.status().flaps
        self.a.peer(msgspec.structs.replace(BASE, **change))
        self.network.run(0.1)
        sent = self.a.sent()
        self.network.run(10)
        assert self.a.status().established
        return self.b.status().flaps - flaps, sent


@pytest.fixture
def pair() -> Pair:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.routes({"10.1.0.0/16": RouteAttributes(), "10.2.0.0/16": RouteAttributes()}, "one")
    a.routes(
        {"10.2.0.0/16": RouteAttributes(), "10.3.0.0/16": RouteAttributes(),
         "10.1.0.0/16": RouteAttributes(communities=(7,))},
        "two",
    )  # fmt: skip
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, passive=True, import_="all"))
    a.peer(BASE)
    network.run(3)
    assert set(b.received(IPV4_UNICAST)) == {"10.1.0.0/16", "10.2.0.0/16"}
    return Pair(network, a, b)


def test_another_route_set_sends_only_differences(pair: Pair) -> None:
    flaps, sent = pair.change(route_set="two")
    assert flaps == 0
    assert bytes((16, 10, 2)) not in sent
    assert set(pair.b.received(IPV4_UNICAST)) == {"10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"}
    assert pair.b.received(IPV4_UNICAST)["10.1.0.0/16"].communities == ("0:7",)


def test_no_route_set_withdraws_all_routes_without_a_reset(pair: Pair) -> None:
    flaps, _ = pair.change(route_set=None)
    assert flaps == 0
    assert not pair.b.received(IPV4_UNICAST)
    assert pair.a.status().families[0].advertised == 0


def test_after_a_change_of_route_set_only_the_new_set_is_advertised(pair: Pair) -> None:
    pair.change(route_set="two")
    pair.a.routes({"10.9.0.0/16": RouteAttributes()}, "one")
    pair.network.run(1)
    assert "10.9.0.0/16" not in pair.b.received(IPV4_UNICAST)
    pair.a.routes({"10.9.0.0/16": RouteAttributes()}, "two")
    pair.network.run(1)
    assert "10.9.0.0/16" in pair.b.received(IPV4_UNICAST)


# Several peers that change their update group at once

ONE, TWO = ("10.1.0.0/16", "10.2.0.0/16"), ("10.2.0.0/16", "10.3.0.0/16")
LATE = "10.4.0.0/16"


def star(**changes: object) -> tuple[Network, Host, list[Host], list[PeerConfig]]:
    """Return a speaker with two route sets, three routers, and how it is configured for them."""
    network = Network()
    hub = network.host("hub", A, 65001)
    for routes, name in ((ONE, "one"), (TWO, "two")):
        hub.routes(dict.fromkeys(routes, RouteAttributes()), name)
    routers, configs = [], []
    for number in range(2, 5):
        address = f"10.0.0.{number}"
        router = network.host(f"r{number}", address, 65000 + number)
        peer = PeerConfig(name="hub", address=A, peer_asn=65001, passive=True, import_="all")
        router.peer(msgspec.structs.replace(peer, export="all"))
        config = PeerConfig(
            name=f"r{number}", address=address, peer_asn=65000 + number, route_set="one"
        )
        configs.append(msgspec.structs.replace(config, **changes))
        hub.peer(configs[-1])
        routers.append(router)
    network.run(3)
    return network, hub, routers, configs


def test_the_difference_of_two_groups_is_computed_once_for_their_peers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, hub, routers, configs = star()
    computed = []
    original = UpdateGroup.export_difference

    def counted(*args: Any) -> UpdateBatch:  # noqa: ANN401
        computed.append(args)
        return original(*args)

    monkeypatch.setattr(UpdateGroup, "export_difference", counted)
    hub.sent()
    for config in configs:
        hub.peer(msgspec.structs.replace(config, route_set="two"))
    assert len(computed) == 1
    # A withdrawal and an announcement, with one prefix each.
    assert hub.sent().count(bytes((16, 10, 1))) == len(routers)
    network.run(1)
    for router in routers:
        assert set(router.received(IPV4_UNICAST)) == set(TWO)
        assert router.status().flaps == 0
    assert {hub.status(c.name).families[0].advertised for c in configs} == {len(TWO)}


def test_routes_that_change_between_two_peers_are_in_the_difference_of_the_second() -> None:
    network, hub, routers, configs = star()
    for number, config in enumerate(configs):
        hub.peer(msgspec.structs.replace(config, route_set="two"))
        if number == 0:
            # Of both sets: of the set that the others leave, and of the set that they get.
            hub.routes({"10.2.0.0/16": None, LATE: RouteAttributes()}, "one")
            hub.routes({"10.3.0.0/16": None, LATE: RouteAttributes(communities=(7,))}, "two")
    network.run(1)
    for router in routers:
        routes = router.received(IPV4_UNICAST)
        assert set(routes) == {"10.2.0.0/16", LATE}
        assert routes[LATE].communities == ("0:7",)


def test_a_peer_is_not_sent_its_own_routes_in_a_difference() -> None:
    network, hub, routers, configs = star(route_set=None, export="all", import_="all")
    own = ["10.7.0.0/16", None, "10.9.0.0/16"]
    for router, prefix in zip(routers, own, strict=True):
        if prefix is not None:
            router.routes({prefix: RouteAttributes()})
    network.run(1)
    for config in configs:
        hub.peer(msgspec.structs.replace(config, next_hop_ipv4="10.0.0.99"))
    network.run(1)
    for router, prefix in zip(routers, own, strict=True):
        routes = router.received(IPV4_UNICAST)
        assert set(routes) == {one for one in own if one not in (None, prefix)}
        assert {route.next_hop for route in routes.values()} == {"10.0.0.99"}


def test_another_ipv6_next_hop_advertises_the_ipv6_routes_again_and_no_others(pair: Pair) -> None:
    pair.a.routes({"fd00:1::/64": RouteAttributes()}, "one")
    pair.network.run(1)
    assert pair.b.received(IPV6_UNICAST)["fd00:1::/64"].next_hop != "fd00::a"
    for address in ("fd00::a", "fd00::b"):
        flaps, sent = pair.change(next_hop_ipv6=address)
        assert flaps == 0
        assert bytes((16, 10, 1)) not in sent
        assert pair.b.received(IPV6_UNICAST)["fd00:1::/64"].next_hop == address


def test_another_ipv6_next_hop_sends_nothing_without_ipv6_routes(pair: Pair) -> None:
    assert pair.change(next_hop_ipv6="fd00::a") == (0, b"")


def test_another_ipv4_next_hop_advertises_the_ipv4_routes_again(pair: Pair) -> None:
    flaps, _ = pair.change(next_hop_ipv4="10.0.0.9")
    assert flaps == 0
    assert {r.next_hop for r in pair.b.received(IPV4_UNICAST).values()} == {"10.0.0.9"}


def test_other_timers_reset_the_session_once_with_a_reason(pair: Pair) -> None:
    flaps, _ = pair.change(hold_time=30, keepalive_time=10)
    assert flaps == 1
    assert pair.a.status().hold_time == 30
    reasons = [
        event.reason
        for event in pair.a.events
        if isinstance(event, StateChanged) and event.old == "Established"
    ]
    assert reasons == ["configuration changed"]
    assert pair.b.status().last_error == "received: Cease / Other Configuration Change"


def test_the_connect_retry_time_has_no_effect_on_the_session(pair: Pair) -> None:
    flaps, sent = pair.change(connect_retry_time=7)
    assert (flaps, sent) == (0, b"")


def test_the_same_configuration_has_no_effect(pair: Pair) -> None:
    flaps, sent = pair.change()
    assert (flaps, sent) == (0, b"")


def test_f51_another_peer_as_restarts_the_session(pair: Pair) -> None:
    before = pair.a.status()
    pair.a.peer(msgspec.structs.replace(BASE, peer_asn=65003))
    pair.network.run(10)
    assert before.established
    assert not pair.a.status().established
    assert "peer AS 65002, expected 65003" in pair.a.status().reason


INSTANCE_ROWS: list[tuple[dict[str, object], int]] = [
    ({}, 0),
    ({"selection_deferral_time": 7}, 0),
    ({"originate": ("10.9.0.0/16",)}, 0),
    ({"imports": (InstanceImport("red"),)}, 0),
    ({"local_asn": 64999}, 1),
    ({"router_id": "192.0.2.1"}, 1),
    ({"listen": ((A, 1179),)}, 1),
    ({"vrf": "red"}, 1),
    ({"confederation": Confederation(64999, (65001,))}, 1),
]


@pytest.mark.parametrize(
    ("change", "flaps"), INSTANCE_ROWS, ids=[str(row[0]) for row in INSTANCE_ROWS]
)
def test_a_change_of_the_instance_recreates_it_or_has_no_effect(
    change: dict[str, object], flaps: int, pair: Pair
) -> None:
    """Another AS, identifier or way to listen: every session is restarted, and routes stay."""
    values: dict[str, object] = {"name": INSTANCE, "local_asn": 65001, "router_id": A, **change}
    pair.b.peer(PeerConfig(name="a", address=A, peer_asn=0, passive=True, import_="all"))
    pair.network.run(5)
    before = pair.b.status().flaps
    pair.a.give(SetInstance(InstanceConfig(**values)))  # type: ignore[arg-type]
    pair.network.run(10)
    status = next(s for s in pair.b.engine.views.peers(pair.network.now) if s.name == "a")
    assert status.established
    assert status.flaps - before == flaps
    assert set(pair.b.received(IPV4_UNICAST)) == {"10.1.0.0/16", "10.2.0.0/16"}


def test_the_table_of_routers_has_a_row_for_every_setting() -> None:
    assert {field for change, _ in INSTANCE_ROWS for field in change} | {"name"} == set(
        InstanceConfig.__struct_fields__
    )


def test_soft_import_in_and_out_again(pair: Pair) -> None:
    pair.b.routes({"10.8.0.0/16": RouteAttributes()})
    pair.b.peer(
        PeerConfig(name="a", address=A, peer_asn=65001, passive=True, import_="all", export="local")
    )
    pair.network.run(1)
    assert not pair.a.available(IPV4_UNICAST).get("10.8.0.0/16")
    flaps, _ = pair.change(import_="all")
    assert flaps == 0
    assert "10.8.0.0/16" in pair.a.available(IPV4_UNICAST)
    flaps, _ = pair.change(import_="none")
    assert flaps == 0
    assert "10.8.0.0/16" not in pair.a.available(IPV4_UNICAST)
    assert "10.8.0.0/16" in pair.a.received(IPV4_UNICAST)
