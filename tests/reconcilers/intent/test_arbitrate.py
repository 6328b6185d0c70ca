"""Arbitration between dialects: one dialect at most has an address in a VRF, a port, and a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconcilers.intent.arbitrate import Arbitrated, Claim, arbitrate
from reconcilers.model import Instance, InstanceImport, ObjectRef, Peer
from speaker.nlri import IPV4_UNICAST
from tests.support.examples import examples

ADDRESS = "192.0.2.1"


def instance(
    dialect: str, name: str = "", *, vrf: str | None = None, port: int | None = None
) -> Instance:
    """Make an instance of a dialect, named after it by default."""
    name = name or dialect
    return Instance(
        name=name,
        vrf=vrf,
        local_asn=65001,
        router_id="192.0.2.9",
        listen_port=port,
        origin=ObjectRef(f"{dialect.title()}Router", "", name),
        dialect=dialect,
    )


def peer(
    dialect: str,
    address: str | None = ADDRESS,
    *,
    of: str = "",
    interface: str | None = None,
    name: str = "p",
    origin: str = "",
) -> Peer:
    """Make a peer of a dialect's instance."""
    return Peer(
        instance=of or dialect,
        name=name,
        address=address,
        interface=interface,
        peer_asn=65000,
        families=(IPV4_UNICAST,),
        origins=(ObjectRef(f"{dialect.title()}Peer", "ns", origin or name),),
        dialect=dialect,
    )


def decide(
    *rows: Instance | Peer,
    owners: Mapping[Claim, str] | None = None,
    created: Mapping[str, str] | None = None,
) -> Arbitrated:
    """Arbitrate; ``created`` has creationTimestamps by the kind of the object."""
    times = created or {}
    return arbitrate(
        [row for row in rows if isinstance(row, Instance)],
        [row for row in rows if isinstance(row, Peer)],
        owners or {},
        lambda ref: times.get(ref.kind, ""),
    )


def winners(found: Arbitrated) -> list[str]:
    """Return the dialects of the peers in effect."""
    return [row.dialect for row in found.peers]


# Peers


def test_of_two_dialects_with_one_peer_address_one_has_it_and_the_problem_names_both() -> None:
    found = decide(instance("ant"), instance("bee"), peer("ant"), peer("bee"))
    assert winners(found) == ["ant"]
    (problem,) = found.problems
    assert problem.objects == (ObjectRef("BeePeer", "ns", "p"), ObjectRef("AntPeer", "ns", "p"))
    assert problem.message == (
        "peer 'p' is not configured: its address 192.0.2.1 belongs to peer 'p' of AntPeer/ns/p "
        "(dialect ant) until that peer is removed"
    )
    assert (problem.category, problem.dialect) == ("conflict", "bee")
    assert problem.unconfigured == ("bee", "p")
    # The instance of the peer that is not in effect stays.
    assert [row.name for row in found.instances] == ["ant", "bee"]


def test_the_present_owner_keeps_an_address_against_an_older_object() -> None:
    rows = (instance("ant"), instance("bee"), peer("ant"), peer("bee"))
    first = decide(instance("bee"), peer("bee"))
    second = decide(*rows, owners=first.owners, created={"AntPeer": "2020", "BeePeer": "2025"})
    assert winners(second) == ["bee"]


def test_the_other_dialect_follows_when_the_owner_goes_and_then_keeps_the_address() -> None:
    rows = (instance("ant"), instance("bee"), peer("ant"), peer("bee"))
    first = decide(*rows)
    second = decide(instance("bee"), peer("bee"), owners=first.owners)
    assert winners(second) == ["bee"]
    assert not second.problems
    third = decide(*rows, owners=second.owners)
    assert winners(third) == ["bee"]


@pytest.mark.parametrize(
    ("created", "winner"),
    [
        ({"AntPeer": "2025-01-01T00:00:00Z", "BeePeer": "2024-01-01T00:00:00Z"}, "bee"),
        ({"AntPeer": "2024-01-01T00:00:00Z", "BeePeer": "2025-01-01T00:00:00Z"}, "ant"),
        # An absent time is the oldest.
        ({"AntPeer": "2024-01-01T00:00:00Z"}, "bee"),
        ({}, "ant"),
    ],
)
def test_of_two_new_objects_the_older_one_has_the_address(
    created: Mapping[str, str], winner: str
) -> None:
    rows: list[Instance | Peer] = [instance("ant"), instance("bee"), peer("ant"), peer("bee")]
    assert winners(decide(*rows, created=created)) == [winner]
    assert winners(decide(*reversed(rows), created=created)) == [winner]


def test_objects_of_one_age_are_ordered_by_kind_namespace_and_name() -> None:
    def objects(first: ObjectRef, second: ObjectRef) -> list[str]:
        one = replace(peer("ant"), origins=(first,))
        two = replace(peer("bee"), origins=(second,))
        return winners(decide(instance("ant"), instance("bee"), one, two))

    assert objects(ObjectRef("B", "a", "a"), ObjectRef("A", "b", "b")) == ["bee"]
    assert objects(ObjectRef("A", "b", "a"), ObjectRef("A", "a", "b")) == ["bee"]
    assert objects(ObjectRef("A", "a", "b"), ObjectRef("A", "a", "a")) == ["bee"]


def test_peers_in_different_vrfs_do_not_collide() -> None:
    found = decide(instance("ant"), instance("bee", vrf="red"), peer("ant"), peer("bee"))
    assert winners(found) == ["ant", "bee"]
    both = decide(instance("ant", vrf="red"), instance("bee", vrf="red"), peer("ant"), peer("bee"))
    assert winners(both) == ["ant"]
    assert "192.0.2.1 in VRF 'red' belongs to" in both.problems[0].message


def test_a_link_local_address_collides_at_one_interface_only() -> None:
    def found(address: str | None, *interfaces: str | None) -> list[str]:
        one, two = (
            peer(d, address, interface=i) for d, i in zip(("ant", "bee"), interfaces, strict=True)
        )
        return winners(decide(instance("ant"), instance("bee"), one, two))

    assert found("fe80::1", "eth0", "eth1") == ["ant", "bee"]
    assert found("fe80::1", "eth0", "eth0") == ["ant"]
    # Unnumbered: the router at an interface, whatever its address.
    assert found(None, "eth0", "eth1") == ["ant", "bee"]
    assert found(None, "eth0", "eth0") == ["ant"]
    # A global address is one router's, at whichever interface.
    assert found("2001:db8::1", "eth0", None) == ["ant"]


def test_an_address_is_compared_by_value() -> None:
    rows = (peer("ant", "2001:db8::1"), peer("bee", "2001:DB8:0::1"))
    assert winners(decide(instance("ant"), instance("bee"), *rows)) == ["ant"]


def test_within_one_dialect_two_peers_with_one_address_stay() -> None:
    rows: list[Instance | Peer] = [instance("ant", "a"), instance("ant", "b")]
    rows += [peer("ant", of="a"), peer("ant", of="b")]
    found = decide(*rows)
    assert [row.instance for row in found.peers] == ["a", "b"]
    assert not found.problems
    # Both have it, and both lose it, as one claimant.
    lost = decide(*rows, instance("bee"), peer("bee"), owners={("peer", "", ADDRESS): "bee"})
    assert winners(lost) == ["bee"]
    assert [problem.unconfigured for problem in lost.problems] == [("a", "p"), ("b", "p")]


# Ports


def test_of_two_listeners_on_one_port_one_listens() -> None:
    found = decide(instance("ant", port=179), instance("bee", port=179))
    assert [row.listen_port for row in found.instances] == [179, None]
    (problem,) = found.problems
    assert problem.message == (
        "instance 'bee' does not listen: port 179 belongs to instance 'ant' of AntRouter/ant "
        "(dialect ant) until that instance is removed"
    )
    assert (problem.category, problem.unconfigured) == ("conflict", ())
    kept = decide(
        instance("ant", port=179),
        instance("bee", port=179),
        owners={("port", "", "179"): "bee"},
    )
    assert [row.listen_port for row in kept.instances] == [None, 179]


def test_listeners_in_different_vrfs_or_on_different_ports_do_not_collide() -> None:
    for other in (instance("bee", vrf="red", port=179), instance("bee", port=1179)):
        found = decide(instance("ant", port=179), other)
        assert [row.listen_port for row in found.instances] == [179, other.listen_port]
        assert not found.problems


# Names


def test_of_two_instances_with_one_name_one_gets_another_name_without_a_problem() -> None:
    rows = (
        instance("ant", "main"),
        instance("bee", "main"),
        peer("ant", of="main"),
        peer("bee", "192.0.2.2", of="main"),
    )
    found = decide(*rows)
    assert [(row.name, row.configured_name) for row in found.instances] == [
        ("main", None),
        ("bee.main", "main"),
    ]
    assert [row.instance for row in found.peers] == ["main", "bee.main"]
    assert not found.problems
    kept = decide(*rows, owners={("instance", "", "main"): "bee"})
    assert [row.name for row in kept.instances] == ["ant.main", "main"]


def test_an_import_follows_the_name_of_its_dialects_instance() -> None:
    blue = replace(instance("bee", "blue"), imports=(InstanceImport("red", None),))
    found = decide(instance("ant", "red"), instance("bee", "red"), blue)
    imports = {row.configured_name or row.name: row.imports for row in found.instances}
    assert imports["blue"] == (InstanceImport("bee.red", None),)
    alone = decide(instance("bee", "red"), blue)
    assert alone.instances[1] == blue


def test_an_instance_keeps_its_name_when_the_other_one_goes_and_comes() -> None:
    ant, bee = instance("ant", "main"), instance("bee", "main")
    first = decide(ant, bee)
    alone = decide(bee, owners=first.owners)
    # Another name would be another instance: its sessions would end.
    assert [row.name for row in alone.instances] == ["bee.main"]
    back = decide(ant, bee, owners=alone.owners)
    assert [row.name for row in back.instances] == ["main", "bee.main"]
    # A new one has no name to keep.
    gone = decide(owners=back.owners)
    assert [row.name for row in decide(bee, owners=gone.owners).instances] == ["main"]


def test_an_unknown_name_is_reported() -> None:
    found = decide(instance("ant", "main"), instance("ant", "bee.main"), instance("bee", "main"))
    assert [row.name for row in found.instances] == ["main", "bee.main", "bee.bee.main"]


# Any order

DIALECTS = ("ant", "bee", "fly")
PEERS: Final = (
    ("main", ADDRESS, None, "a"),
    ("main", ADDRESS, None, "b"),
    ("main", "fe80::1", "eth0", "c"),
    ("red", ADDRESS, None, "a"),
    ("red", None, "eth0", "c"),
)


def rows_of(dialect: str, *, instances: set[str], peers: set[int]) -> list[Instance | Peer]:
    """Make some instances of a dialect, and peers of theirs."""
    made: list[Instance | Peer] = [
        instance(dialect, name, vrf="red" if name == "red" else None, port=179)
        for name in sorted(instances)
    ]
    for number in sorted(peers):
        of, address, interface, name = PEERS[number]
        if of in instances:
            made.append(peer(dialect, address, of=of, interface=interface, name=name))
    return made


CLUSTERS = st.tuples(
    *(
        st.builds(
            rows_of,
            st.just(dialect),
            # The name that another dialect's instance would get is taken, too.
            instances=st.sets(st.sampled_from(["main", "red", "ant.main"])),
            peers=st.sets(st.integers(0, len(PEERS) - 1)),
        )
        for dialect in DIALECTS
    )
).map(lambda parts: [row for part in parts for row in part])
KINDS = [f"{dialect.title()}{kind}" for dialect in DIALECTS for kind in ("Peer", "Router")]


@settings(max_examples=examples(100))
@given(
    steps=st.lists(CLUSTERS, max_size=5),
    created=st.dictionaries(st.sampled_from(KINDS), st.sampled_from(["2024", "2025"])),
    data=st.data(),
)
def test_in_any_order_of_arrival_each_claim_has_one_winner_that_keeps_it(
    steps: list[list[Instance | Peer]], created: dict[str, str], data: st.DataObject
) -> None:
    owners: Mapping[Claim, str] = {}
    for rows in steps:
        found = decide(*rows, owners=owners, created=created)
        claims = _claims(rows)
        _check_one_winner(rows, claims, found)
        for claim, dialect in owners.items():
            if dialect in claims.get(claim, ()):
                assert found.owners[claim] == dialect
        shuffled = decide(*data.draw(st.permutations(rows)), owners=owners, created=created)
        assert _sorted(shuffled.peers) == _sorted(found.peers)
        assert _sorted(shuffled.problems) == _sorted(found.problems)
        assert shuffled.owners == found.owners
        # The same again changes nothing.
        assert decide(*rows, owners=found.owners, created=created) == found
        owners = found.owners


def _sorted(values: Iterable[object]) -> list[str]:
    return sorted(map(repr, values))


def _claims(rows: Iterable[Instance | Peer]) -> dict[Claim, set[str]]:
    """Return the dialects that want each address and each port, spelled a second time."""
    found: dict[Claim, set[str]] = {}
    for row in rows:
        if isinstance(row, Instance):
            claim = ("port", row.vrf or "", str(row.listen_port))
        else:
            vrf = "red" if row.instance == "red" else ""
            zone = f"%{row.interface}" if row.interface else ""
            claim = ("peer", vrf, f"{row.address or ''}{zone}")
        found.setdefault(claim, set()).add(row.dialect)
    return found


def _check_one_winner(
    rows: Iterable[Instance | Peer], claims: Mapping[Claim, set[str]], found: Arbitrated
) -> None:
    vrfs = {row.name: row.vrf or "" for row in found.instances}
    kept: list[Instance | Peer] = [row for row in found.instances if row.listen_port is not None]
    kept += [replace(row, instance=vrfs[row.instance] or "main") for row in found.peers]
    dialects = _claims(kept)
    assert all(len(names) == 1 for names in dialects.values())
    assert dialects.keys() == claims.keys()
    assert {claim: {found.owners[claim]} for claim in claims} == dialects
    names = [row.name for row in found.instances]
    assert len(set(names)) == len(names) == sum(isinstance(row, Instance) for row in rows)
    left_out = sum(bool(problem.unconfigured) for problem in found.problems)
    assert len(found.peers) + left_out == sum(isinstance(row, Peer) for row in rows)
