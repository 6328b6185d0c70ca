"""Routes of one instance in another: originated and accepted ones, and no others, in the same turn."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from speaker.api import (
    Confederation,
    Import,
    InstanceConfig,
    InstanceImport,
    InvalidConfig,
    PeerConfig,
    PrefixRule,
    RouteAttributes,
    RouteView,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    Input,
    RemoveInstance,
    ResetPeer,
    SendUpdates,
    SetInstance,
    SetPeer,
    UpdateRoutes,
)
from speaker.engine.instance_imports import _Import
from speaker.engine.sliced_work import SLICE_UNITS
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from tests.speaker.network import INSTANCE, Host, Network

HUB = "10.0.0.1"
PREFIXES = [f"10.8.{n}.0/24" for n in range(6)]
COLOURS = ("red", "blue", "green")


class Hub:
    """A router with several instances, each of which has one peer, a router of its own."""

    def __init__(self, **asns: int) -> None:
        """``asns`` are the AS numbers of the instances by name."""
        self.network = Network()
        self.host = self.network.host("hub", HUB, 65000)
        self.configs: dict[str, InstanceConfig] = {}
        self.leaves: dict[str, Host] = {}
        for number, (name, asn) in enumerate(asns.items()):
            address = f"10.0.1.{number + 1}"
            leaf = self.network.host(name, address, 65100 + number)
            leaf.peer(
                PeerConfig(
                    name="hub", address=HUB, peer_asn=asn, passive=True, import_="all", export="all"
                )
            )
            self.leaves[name] = leaf
            self.configure(name, local_asn=asn, router_id=f"192.0.2.{number + 1}")
            self.host.give(
                SetPeer(
                    name,
                    PeerConfig(
                        name="leaf",
                        address=address,
                        peer_asn=65100 + number,
                        import_="all",
                        export="all",
                    ),
                )
            )
        self.network.run(5)
        assert all(leaf.status().established for leaf in self.leaves.values())

    def configure(self, instance: str, **fields: object) -> None:
        """Create or change an instance."""
        values = {"name": instance}
        if instance in self.configs:
            config = self.configs[instance]
            values = {f: getattr(config, f) for f in InstanceConfig.__struct_fields__}
        self.configs[instance] = InstanceConfig(**{**values, **fields})  # type: ignore[arg-type]
        self.host.give(SetInstance(self.configs[instance]))
        self.network.run(1)

    def imports(self, instance: str, *others: str, import_: Import = "all") -> None:
        """Configure what an instance imports."""
        self.configure(instance, imports=tuple(InstanceImport(name, import_) for name in others))

    def local(self, instance: str, prefix: str, attributes: RouteAttributes | None) -> None:
        """Change a local route of an instance, without sending anything."""
        family, nlri = prefix_to_wire(prefix)
        self.host.give(UpdateRoutes(instance, None, {family: {nlri: attributes}}))

    def table(self, instance: str) -> list[RouteView]:
        return list(self.host.engine.views.routes_available(instance, IPV4_UNICAST))

    def imported(self, instance: str, origin: str) -> set[str]:
        """Return the prefixes that an instance has from another instance."""
        return {view.prefix for view in self.table(instance) if view.imported_from == origin}

    def own(self, instance: str) -> set[str]:
        return {view.prefix for view in self.table(instance) if view.imported_from is None}

    def flaps(self) -> int:
        return sum(leaf.status().flaps for leaf in self.leaves.values())


def announce(leaf: Host, *prefixes: str, attributes: RouteAttributes | None = None) -> None:
    leaf.routes({prefix: attributes or RouteAttributes() for prefix in prefixes})


def test_originated_and_accepted_routes_of_one_instance_are_in_the_other() -> None:
    hub = Hub(red=65001, blue=65001)
    hub.imports("blue", "red")
    hub.configure("red", originate=("10.8.0.0/24", "2001:db8::/32"))
    announce(hub.leaves["red"], "10.8.1.0/24")
    hub.network.run(1)
    found = {view.prefix: view for view in hub.table("blue")}
    assert set(found) == {"10.8.0.0/24", "10.8.1.0/24"}
    local, received = found["10.8.0.0/24"], found["10.8.1.0/24"]
    assert (local.imported_from, local.peer, local.best) == ("red", None, True)
    assert (received.imported_from, received.peer) == ("red", "red/leaf")
    assert (received.as_path, received.next_hop) == ("65100", "10.0.1.1")
    # The peers of the other instance get them by its export rules, with the router as next hop.
    sent = hub.leaves["blue"].received(IPV4_UNICAST)
    assert {prefix: (v.as_path, v.next_hop) for prefix, v in sent.items()} == {
        "10.8.0.0/24": ("65001", HUB),
        "10.8.1.0/24": ("65001 65100", HUB),
    }
    # Nothing goes the other way.
    announce(hub.leaves["blue"], "10.8.2.0/24")
    hub.network.run(1)
    assert hub.own("blue") == {"10.8.2.0/24"}
    assert hub.imported("red", "blue") == set()


def test_a_change_is_in_both_instances_and_at_all_peers_after_one_turn() -> None:
    hub = Hub(red=65001, blue=65001)
    hub.imports("blue", "red")
    for attributes in (RouteAttributes(), RouteAttributes(communities=(7,)), None):
        hub.local("red", "10.8.0.0/24", attributes)
        hub.host.sent()
        hub.host.give(SendUpdates())
        writes = [write.connection for write in hub.host.writes]
        assert len(set(writes)) == 2
        assert not hub.host.engine.updates_pending
        expected = set() if attributes is None else {"10.8.0.0/24"}
        assert hub.imported("blue", "red") == expected
        hub.network.run(1)
        assert set(hub.leaves["blue"].received(IPV4_UNICAST)) == expected


def test_imports_are_not_transitive_and_make_no_loop() -> None:
    hub = Hub(red=65001, blue=65001, green=65001)
    hub.imports("red", "blue")
    hub.imports("blue", "red", "green")
    hub.imports("green", "blue")
    for name, prefix in zip(COLOURS, PREFIXES, strict=False):
        announce(hub.leaves[name], prefix)
    hub.network.run(1)
    assert hub.imported("red", "blue") == {PREFIXES[1]}
    assert hub.imported("blue", "red") == {PREFIXES[0]}
    assert hub.imported("blue", "green") == {PREFIXES[2]}
    assert hub.imported("green", "blue") == {PREFIXES[1]}
    for name, prefix in zip(COLOURS, PREFIXES, strict=False):
        hub.leaves[name].routes({prefix: None})
    hub.network.run(1)
    assert [hub.table(name) for name in COLOURS] == [[], [], []]


def test_a_path_behind_an_imported_one_is_imported_all_the_same() -> None:
    hub = Hub(red=65001, blue=65001, green=65001)
    hub.imports("blue", "red")
    hub.imports("green", "blue")
    announce(hub.leaves["red"], "10.8.0.0/24")
    hub.network.run(1)
    assert hub.imported("green", "blue") == set()
    for attributes in (RouteAttributes(med=1), RouteAttributes(med=2), None):
        # The imported path stays the best one: the peer of red has the lower router ID.
        hub.leaves["blue"].routes({"10.8.0.0/24": attributes})
        hub.network.run(1)
        assert next(v for v in hub.table("blue") if v.best).imported_from == "red"
        meds = [view.med for view in hub.table("green") if view.imported_from == "blue"]
        assert meds == ([] if attributes is None else [attributes.med])


def test_a_filter_and_the_import_itself_change_without_a_reset() -> None:
    hub = Hub(red=65001, blue=65001)
    announce(hub.leaves["red"], *PREFIXES)
    hub.network.run(1)
    some = (PrefixRule("10.8.0.0/22", le=24),)
    more = (*some, PrefixRule("10.8.4.0/24"))
    steps: list[tuple[tuple[str, ...], Import, set[str]]] = [
        (("red",), some, set(PREFIXES[:4])),
        (("red",), more, set(PREFIXES[:5])),
        (("red",), "all", set(PREFIXES)),
        (("red",), "none", set()),
        (("red",), "all", set(PREFIXES)),
        ((), "all", set()),
    ]
    for others, rule, expected in steps:
        before = hub.imported("blue", "red")
        hub.host.sent()
        hub.imports("blue", *others, import_=rule)
        assert hub.imported("blue", "red") == expected
        assert set(hub.leaves["blue"].received(IPV4_UNICAST)) == expected
        octets = hub.host.sent()
        for prefix in PREFIXES:
            changed = (prefix in before) != (prefix in expected)
            assert (prefix_to_wire(prefix)[1] in octets) == changed
    assert hub.flaps() == 0


def test_between_two_ases_what_belongs_to_one_stays_there() -> None:
    hub = Hub(red=65001, blue=65002)
    hub.imports("blue", "red")
    attributes = RouteAttributes(
        med=5,
        communities=(65100 << 16 | 7,),
        extended_communities=(bytes.fromhex("4002fde800000001"), bytes.fromhex("0002fde800000002")),
    )
    announce(hub.leaves["red"], "10.8.0.0/24", attributes=attributes)
    hub.local("red", "10.8.1.0/24", RouteAttributes(local_preference=300, med=9))
    hub.network.run(1)
    received, local = sorted(hub.table("blue"), key=lambda view: view.prefix)
    assert (received.med, received.communities) == (None, ("65100:7",))
    assert received.extended_communities == ("0002fde800000002",)
    assert (local.local_preference, local.med) == (None, 9)
    assert hub.leaves["blue"].received(IPV4_UNICAST)["10.8.0.0/24"].as_path == "65002 65100"


def test_within_one_as_all_attributes_pass() -> None:
    hub = Hub(red=65001, blue=65001)
    hub.imports("blue", "red")
    hub.local("red", "10.8.1.0/24", RouteAttributes(local_preference=300, med=9))
    announce(hub.leaves["red"], "10.8.0.0/24", attributes=RouteAttributes(med=5))
    hub.network.run(1)
    received, local = sorted(hub.table("blue"), key=lambda view: view.prefix)
    assert (received.med, local.local_preference, local.med) == (5, 300, 9)


def test_a_path_with_an_as_of_the_importing_instance_is_a_loop() -> None:
    # The peer of red is of the AS of blue.
    hub = Hub(red=65001, blue=65100)
    hub.imports("blue", "red")
    announce(hub.leaves["red"], "10.8.0.0/24")
    hub.network.run(1)
    assert hub.own("red") == {"10.8.0.0/24"}
    assert hub.table("blue") == []


def test_a_path_with_the_identifier_of_the_importing_confederation_is_a_loop() -> None:
    hub = Hub(red=65001, blue=65002)
    hub.configure("blue", confederation=Confederation(65100, (65003,)))
    hub.imports("blue", "red")
    announce(hub.leaves["red"], "10.8.0.0/24")
    hub.network.run(1)
    assert hub.imported("blue", "red") == set()


def test_a_route_of_the_instance_itself_is_preferred_over_an_equal_imported_one() -> None:
    for origin, target in (("red", "blue"), ("blue", "red")):
        hub = Hub(red=65001, blue=65001)
        hub.imports(target, origin)
        hub.configure(origin, originate=("10.8.0.0/24",))
        hub.configure(target, originate=("10.8.0.0/24",))
        best, other = sorted(hub.table(target), key=lambda view: not view.best)
        assert (best.imported_from, other.imported_from) == (None, origin)
        hub.configure(target, originate=())
        assert [view.imported_from for view in hub.table(target)] == [origin]


def test_an_instance_may_be_created_recreated_and_removed() -> None:
    hub = Hub(blue=65001)
    hub.imports("blue", "red")
    assert hub.table("blue") == []
    hub.configure("red", local_asn=65001, router_id="192.0.2.9", originate=("10.8.0.0/24",))
    assert hub.imported("blue", "red") == {"10.8.0.0/24"}
    hub.host.sent()
    hub.configure("red", router_id="192.0.2.10")
    assert hub.imported("blue", "red") == {"10.8.0.0/24"}
    # The route is the same with the new router ID: no UPDATE is sent.
    assert hub.host.sent() == b""
    hub.configure("red", local_asn=65077)
    assert hub.imported("blue", "red") == {"10.8.0.0/24"}
    hub.host.give(RemoveInstance("red"))
    hub.network.run(1)
    assert hub.table("blue") == []
    assert set(hub.leaves["blue"].received(IPV4_UNICAST)) == set()
    assert hub.flaps() == 0


def test_the_routes_of_a_lost_session_go_in_both_instances() -> None:
    hub = Hub(red=65001, blue=65001)
    hub.imports("blue", "red")
    announce(hub.leaves["red"], *PREFIXES)
    hub.network.run(1)
    assert hub.imported("blue", "red") == set(PREFIXES)
    hub.host.give(ResetPeer("red", "leaf"))
    hub.host.give(SendUpdates())
    assert (hub.own("red"), hub.imported("blue", "red")) == (set(), set())
    hub.network.run(5)
    assert hub.imported("blue", "red") == set(PREFIXES)


def test_an_import_of_itself_or_of_one_instance_twice_is_invalid() -> None:
    for names in (("red",), ("blue", "blue")):
        with pytest.raises(InvalidConfig, match="imports"):
            InstanceConfig(
                name="red",
                local_asn=65001,
                router_id="192.0.2.1",
                imports=tuple(map(InstanceImport, names)),
            )
    with pytest.raises(InvalidConfig, match="originate"):
        InstanceConfig(
            name="red", local_asn=65001, router_id="192.0.2.1", originate=("10.0.0.1/8",)
        )


def test_an_invalid_filter_of_an_import_changes_nothing() -> None:
    hub = Hub(red=65001, blue=65001)
    before = hub.host.engine.instance("blue").config
    with pytest.raises(InvalidConfig, match="blue imports red"):
        hub.imports("blue", "red", import_=(PrefixRule("10.0.0.0/8", ge=4),))
    assert hub.host.engine.instance("blue").config == before


def _choice(rng: random.Random, names: Iterable[str]) -> list[str]:
    return [name for name in names if rng.random() < 0.5]


@pytest.mark.parametrize("seed", range(12))
def test_imported_routes_match_the_other_instances_after_any_changes(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  a seed
    hub = Hub(red=65001, blue=65001, green=65002)
    for _ in range(40):
        name = rng.choice(COLOURS)
        match rng.randrange(5):
            case 0:
                hub.imports(name, *_choice(rng, [one for one in COLOURS if one != name]))
            case 1:
                hub.configure(name, originate=tuple(_choice(rng, PREFIXES)))
            case 2:
                hub.host.give(ResetPeer(name, "leaf"))
            case _:
                med = rng.choice([None, None, 1, 2])
                attributes = None if rng.random() < 0.4 else RouteAttributes(med=med)
                hub.leaves[name].routes(dict.fromkeys(_choice(rng, PREFIXES), attributes))
        hub.network.run(rng.choice([0.0005, 5]))
    hub.network.run(120)
    assert all(leaf.status().established for leaf in hub.leaves.values())
    for name in COLOURS:
        importing = {one.instance for one in hub.configs[name].imports}
        for other in COLOURS:
            expected = hub.own(other) if other in importing else set()
            assert hub.imported(name, other) == expected
        best = {view.prefix: view for view in hub.table(name) if view.best}
        sent = hub.leaves[name].received(IPV4_UNICAST)
        leaf = str(65100 + COLOURS.index(name))
        # All but what comes from the peer itself is at the peer, as the table has it.
        assert set(sent) == {p for p, v in best.items() if v.imported_from or v.peer is None}
        for prefix, view in sent.items():
            asn = hub.configs[name].local_asn
            assert view.as_path == f"{asn} {best[prefix].as_path}".strip()
            assert leaf not in view.as_path.split() or best[prefix].imported_from
    assert INSTANCE not in hub.configs


@pytest.mark.parametrize("again", [False, True])
def test_many_routes_are_imported_and_withdrawn_in_slices(
    monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    engine = Engine(random.Random(1))  # noqa: S311  jitter
    moved = most = 0

    def counted(move: Any) -> Any:  # noqa: ANN401
        def call(link: object, family: object, path: object, *nlri: Any) -> None:  # noqa: ANN401
            nonlocal moved
            moved += len((*nlri, path)[0])
            move(link, family, path, *nlri)

        return call

    for name in ("_announce", "_withdraw"):
        monkeypatch.setattr(_Import, name, counted(getattr(_Import, name)))

    def give(item: Input) -> None:
        nonlocal moved, most
        moved = 0
        engine.handle(item, 0.0)
        most = max(most, moved)

    def settle() -> None:
        while engine.updates_pending:
            give(SendUpdates())

    def imported() -> int:
        table = engine._instances["b"].outbound.loc.tables.get(IPV4_UNICAST)
        return 0 if table is None else len(table)

    texts = tuple(f"10.{n >> 8}.{n & 255}.0/24" for n in range(5000))
    give(
        SetInstance(
            InstanceConfig(name="a", local_asn=65000, router_id="192.0.2.1", originate=texts)
        )
    )
    settle()
    most = 0
    b = InstanceConfig(
        name="b", local_asn=65000, router_id="192.0.2.2", imports=(InstanceImport("a"),)
    )
    give(SetInstance(b))
    if again:
        give(SetInstance(msgspec.structs.replace(b, imports=())))
        give(SetInstance(b))
    settle()
    assert imported() == 5000
    give(SetInstance(msgspec.structs.replace(b, imports=())))
    settle()
    assert imported() == 0
    assert 0 < most <= SLICE_UNITS
