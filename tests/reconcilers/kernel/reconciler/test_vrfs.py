"""Routes of VRFs, and imports between them."""

from __future__ import annotations

import msgspec

from reconcilers.kernel.writer.protocol_messages import IPV4, RouteTable, TrackedAddress
from reconcilers.model import Instance, InstanceImport
from tests.reconcilers.kernel.build import octets, path, paths
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    NETWORKS,
    NUMBERED,
    ONE,
    PREFIX,
    RED,
    Agent,
    hops,
)

RED_VRF = Instance("red", "red", 64710, "10.88.0.11", dialect="frr")


def test_the_routes_of_a_vrf_stand_in_its_table() -> None:
    agent = Agent().instances(RED_VRF).start()
    agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, instance="red")
    agent.table(ONE, PREFIX)
    assert agent.of(RED) == {PREFIX: hops("10.99.0.1", interface=3)}
    assert agent.routes == {PREFIX: hops("10.88.0.1")}


def test_they_follow_it_to_another_table_and_go_with_it() -> None:
    agent = Agent().instances(RED_VRF).start()
    agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, instance="red")
    (vrf,) = NUMBERED.vrfs or ()
    moved = msgspec.structs.replace(NUMBERED, vrfs=(msgspec.structs.replace(vrf, table=77),))
    for n in range(1, 255):
        address = TrackedAddress(77, octets(f"10.99.0.{n}"))
        agent.writer.own_routes[address] = NETWORKS[1044]
    agent.kernel.host_changed(moved)
    agent.settle()
    assert not agent.of(RED)
    assert agent.of(RouteTable(77, IPV4, 20)) == {PREFIX: hops("10.99.0.1", interface=3)}
    agent.kernel.host_changed(msgspec.structs.replace(NUMBERED, vrfs=()))
    agent.settle()
    assert not agent.of(RouteTable(77, IPV4, 20))


def test_a_vrf_with_the_table_of_another_vrf_waits_until_it_has_its_own() -> None:
    blue = Instance("blue", "blue", 64710, "10.88.0.11", dialect="frr")
    agent = Agent().instances(RED_VRF, blue)
    (vrf,) = NUMBERED.vrfs or ()
    other = msgspec.structs.replace(vrf, name="blue")
    second = "198.51.100.0/24"
    agent.kernel.host_changed(msgspec.structs.replace(NUMBERED, vrfs=(vrf, other)))
    agent.start()
    for name in ("red", "blue"):
        agent.table(paths(path("10.99.0.1", instance=name)), PREFIX, instance=name)
    agent.table(paths(path("10.99.0.1", instance="red")), PREFIX, second, instance="red")
    assert agent.of(RED) == {PREFIX: hops("10.99.0.1", interface=3)}
    assert agent.kernel.wanted_tables.problems() == [
        "VRF red has the table of the VRF blue, whose routes stand there: give it its own"
    ]
    own = msgspec.structs.replace(other, table=77)
    agent.kernel.host_changed(msgspec.structs.replace(NUMBERED, vrfs=(vrf, own)))
    agent.settle()
    assert set(agent.of(RED)) == {PREFIX, second}
    assert not agent.kernel.wanted_tables.problems()


def test_an_imported_route_is_resolved_in_the_vrf_that_it_comes_from() -> None:
    importing = msgspec.structs.replace(RED_VRF, imports=(InstanceImport("main", None),))
    agent = Agent().instances(importing).start()
    imported = path("10.88.0.1", instance="main", imported=True)
    agent.table(paths(imported), PREFIX, instance="red")
    assert agent.of(RED) == {PREFIX: hops("10.88.0.1")}
