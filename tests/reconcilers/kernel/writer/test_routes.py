"""Routes that a writer installs, as ``ip`` shows them, with nexthop objects and without."""

from __future__ import annotations

import json
import sys

import pytest

from reconcilers.kernel.writer.protocol_messages import (
    BLACKHOLE,
    IPV4,
    IPV6,
    Batch,
    Confirmed,
    Move,
    NextHop,
    Reason,
    Routes,
    RouteTable,
    SetRoutes,
)
from tests.reconcilers.kernel.writer.conftest import OTHER, Ground
from tests.support.kernel_writer import (
    MAIN,
    WriterProcess,
    gateways,
    hop,
    routes,
    wire,
    writer_in,
)
from tests.support.netns import DEVICE, Namespace
from tests.support.wait import eventually

pytestmark = [pytest.mark.netns, pytest.mark.program]


def test_routes_are_installed_changed_and_removed(ground: Ground, writer: WriterProcess) -> None:
    assert writer.install((ground.a,), "10.1.0.0/16", "10.2.3.0/24", "0.0.0.0/0").failures == ()
    found = routes(ground.side)
    assert set(found) == {"10.1.0.0/16", "10.2.3.0/24", "default"}
    assert gateways(found["10.1.0.0/16"]) == {("192.0.2.2", DEVICE, 1)}
    assert found["10.1.0.0/16"]["metric"] == 20

    writer.install((ground.b,), "10.1.0.0/16")
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == {("198.51.100.2", OTHER, 1)}
    assert gateways(routes(ground.side)["10.2.3.0/24"]) == {("192.0.2.2", DEVICE, 1)}

    assert writer.remove("10.1.0.0/16", "10.9.9.0/24", "0.0.0.0/0").failures == ()
    assert set(routes(ground.side)) == {"10.2.3.0/24"}


def test_an_urgent_batch_is_written_before_the_batches_that_wait(
    ground: Ground, writer: WriterProcess
) -> None:
    def batch(number: int, prefix: str, *, urgent: bool = False) -> Batch:
        routes = (SetRoutes((ground.a,), (Routes(MAIN, wire(prefix)),)),)
        return Batch(number, routes=routes, urgent=urgent)

    writer.send(
        batch(1, "10.1.0.0/16"), batch(2, "10.2.0.0/16"), batch(3, "10.3.0.0/16", urgent=True)
    )
    assert [writer.expect(Confirmed).number for _ in range(3)] == [3, 1, 2]
    assert set(routes(ground.side)) == {"10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"}


def test_what_is_right_is_not_written_again(ground: Ground, writer: WriterProcess) -> None:
    writer.install((ground.a, ground.b), "10.1.0.0/16")
    assert writer.install((ground.b, ground.a), "10.1.0.0/16").written == 0


def test_a_set_of_next_hops_is_used_together_with_its_weights(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.install((ground.a, ground.b._replace(weight=3)), "10.1.0.0/16")
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == {
        ("192.0.2.2", DEVICE, 1),
        ("198.51.100.2", OTHER, 3),
    }


@pytest.mark.parametrize("count", [2, 8, 64])
def test_sets_have_up_to_64_next_hops(ground: Ground, writer: WriterProcess, count: int) -> None:
    hops = tuple(hop(f"192.0.2.{n}", ground.device) for n in range(10, 10 + count))
    writer.install(hops, "10.1.0.0/16")
    assert len(gateways(routes(ground.side)["10.1.0.0/16"])) == count


READ = """
import json, sys
from pyroute2 import IPRoute
table, family = map(int, sys.argv[1:])
with IPRoute() as kernel:
    found = {}
    for route in kernel.get_routes(family=family, table=table, proto=186):
        prefix = f"{route.get_attr('RTA_DST')}/{route['dst_len']}"
        members = route.get_attr("RTA_MULTIPATH") or [route]
        found[prefix] = sorted(str(member.get_attr("RTA_GATEWAY")) for member in members)
print(json.dumps(found))
"""
"""A program that knows no nexthop objects: it reads the gateways of routes with protocol 186."""


@pytest.mark.parametrize("compatible", ["1", "0"])
def test_readers_without_nexthop_objects_find_the_gateways(ground: Ground, compatible: str) -> None:
    command = f"echo {compatible} >/proc/sys/net/ipv4/nexthop_compat_mode"
    ground.side.run("sh", "-c", command)
    blue = RouteTable(1044, IPV4, 20)
    with writer_in(ground.side) as running:
        running.install((ground.a, ground.b), "10.1.0.0/16", table=blue)
        running.install((ground.a,), "10.2.0.0/16", table=blue)
        running.install((ground.a6, ground.b6), "2001:db8:2::/48", table=blue._replace(family=IPV6))
    for family, expected in (
        (IPV4, {"10.1.0.0/16": ["192.0.2.2", "198.51.100.2"], "10.2.0.0/16": ["192.0.2.2"]}),
        (IPV6, {"2001:db8:2::/48": ["2001:db8:a::2", "2001:db8:b::2"]}),
    ):
        found = ground.side.run(sys.executable, "-c", READ, "1044", str(family))
        assert json.loads(found) == expected


def test_ipv6_routes_by_global_and_by_link_local_next_hops(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.install((ground.a6, ground.b6), "2001:db8:1::/48")
    writer.install((ground.local6,), "2001:db8:2::/48", "::/0")
    found = routes(ground.side, 6)
    assert gateways(found["2001:db8:1::/48"]) == {
        ("2001:db8:a::2", DEVICE, 1),
        ("2001:db8:b::2", OTHER, 1),
    }
    assert gateways(found["2001:db8:2::/48"]) == {("fe80::2", DEVICE, 1)}
    writer.install((ground.b6,), "2001:db8:1::/48")
    found = routes(ground.side, 6)
    assert gateways(found["2001:db8:1::/48"]) == {("2001:db8:b::2", OTHER, 1)}
    writer.remove("2001:db8:1::/48", "::/0")
    assert set(routes(ground.side, 6)) == {"2001:db8:2::/48"}


def test_an_ipv6_gateway_may_be_covered_by_a_route_of_ours(
    ground: Ground, writer: WriterProcess
) -> None:
    """A fabric announces the host routes of a network: Linux refuses gateways within them."""
    gateway = hop("2001:db8:a::3", ground.device)
    writer.install((ground.a6,), "2001:db8:a::3/128")
    assert writer.install((gateway,), "2001:db8:1::/48").failures == ()
    assert writer.install((gateway, ground.b6), "2001:db8:2::/48").failures == ()
    writer.install((ground.b6,), "2001:db8:3::/48")
    assert writer.install((gateway,), "2001:db8:3::/48").failures == ()
    assert writer.install((gateway,), "10.1.0.0/16").failures == ()
    expected = ("2001:db8:a::3", DEVICE, 1)
    found = routes(ground.side, 6)
    assert gateways(found["2001:db8:1::/48"]) == gateways(found["2001:db8:3::/48"]) == {expected}
    assert gateways(found["2001:db8:2::/48"]) == {expected, ("2001:db8:b::2", OTHER, 1)}
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == {expected}

    writer.kill()
    writer.start()
    writer.connect()
    assert writer.install((gateway,), "2001:db8:1::/48", "2001:db8:3::/48").written == 0
    assert writer.install((gateway, ground.b6), "2001:db8:2::/48").written == 0
    writer.remove("2001:db8:1::/48", "2001:db8:2::/48", "2001:db8:3::/48")
    assert set(routes(ground.side, 6)) == {"2001:db8:a::3"}


def test_ipv4_routes_by_ipv6_next_hops(ground: Ground, writer: WriterProcess) -> None:
    writer.install((ground.local6,), "10.1.0.0/16")
    writer.install((ground.a6, ground.b), "10.2.0.0/16")
    found = routes(ground.side)
    assert gateways(found["10.1.0.0/16"]) == {("fe80::2", DEVICE, 1)}
    assert gateways(found["10.2.0.0/16"]) == {
        ("2001:db8:a::2", DEVICE, 1),
        ("198.51.100.2", OTHER, 1),
    }
    writer.remove("10.1.0.0/16", "10.2.0.0/16")
    assert routes(ground.side) == {}


def test_onlink_and_interface_routes(ground: Ground, writer: WriterProcess) -> None:
    writer.install((hop("203.0.113.7", ground.device, onlink=True),), "10.1.0.0/16")
    writer.install((hop("", ground.device),), "10.2.0.0/16")
    writer.install((hop("", ground.device),), "2001:db8:2::/48")
    found = routes(ground.side)
    assert gateways(found["10.1.0.0/16"]) == {("203.0.113.7", DEVICE, 1)}
    assert "onlink" in str(found["10.1.0.0/16"])
    assert gateways(found["10.2.0.0/16"]) == {("", DEVICE, 1)}
    assert gateways(routes(ground.side, 6)["2001:db8:2::/48"]) == {("", DEVICE, 1)}


def test_blackholes_of_both_families(ground: Ground, writer: WriterProcess) -> None:
    writer.install(BLACKHOLE, "10.1.0.0/32")
    writer.install(BLACKHOLE, "2001:db8:1::/128")
    assert routes(ground.side)["10.1.0.0"]["type"] == "blackhole"
    assert routes(ground.side, 6)["2001:db8:1::"]["type"] == "blackhole"
    writer.install((ground.a,), "10.1.0.0/32")
    assert gateways(routes(ground.side)["10.1.0.0"]) == {("192.0.2.2", DEVICE, 1)}
    writer.install(BLACKHOLE, "10.1.0.0/32")
    assert routes(ground.side)["10.1.0.0"]["type"] == "blackhole"
    writer.remove("10.1.0.0/32")
    writer.remove("2001:db8:1::/128")
    assert (routes(ground.side), routes(ground.side, 6)) == ({}, {})


def test_tables_and_metrics_do_not_mix(ground: Ground, writer: WriterProcess) -> None:
    red, blue, cheap = (
        RouteTable(1001, IPV4, 20),
        RouteTable(70_000, IPV4, 20),
        MAIN._replace(metric=9),
    )
    for table, next_hop in ((red, ground.a), (blue, ground.b), (cheap, ground.c), (MAIN, ground.a)):
        writer.install((next_hop,), "10.1.0.0/16", table=table)
    assert gateways(routes(ground.side, table=1001)["10.1.0.0/16"]) == {("192.0.2.2", DEVICE, 1)}
    assert gateways(routes(ground.side, table=70_000)["10.1.0.0/16"]) == {
        ("198.51.100.2", OTHER, 1)
    }
    writer.remove("10.1.0.0/16", table=red)
    writer.remove("10.1.0.0/16", table=cheap)
    assert routes(ground.side, table=1001) == {}
    assert routes(ground.side)["10.1.0.0/16"]["metric"] == 20
    assert set(routes(ground.side, table=70_000)) == {"10.1.0.0/16"}


def test_a_lost_next_hop_is_one_message_for_all_routes(
    ground: Ground, object_writer: WriterProcess
) -> None:
    both, left = (ground.a, ground.b), (ground.b,)
    prefixes = [f"10.{n >> 8}.{n & 255}.0/24" for n in range(1000)]
    object_writer.install(both, *prefixes)
    assert object_writer.batch(moves=(Move(both, left),)).written <= 3
    assert {str(gateways(r)) for r in routes(ground.side).values()} == {
        str({("198.51.100.2", OTHER, 1)})
    }
    # Now the routes are as they shall be, so that the batch about them writes nothing.
    assert object_writer.install(left, *prefixes).written == 0
    assert object_writer.batch(moves=(Move(left, None),)).written <= 3
    assert routes(ground.side) == {}
    assert object_writer.remove(*prefixes).written == 0


def test_a_set_moves_to_another_set(ground: Ground, writer: WriterProcess) -> None:
    both = (ground.a, ground.b)
    writer.install(both, "10.1.0.0/16", "10.2.0.0/16")
    writer.install((ground.c,), "10.3.0.0/16")
    writer.install((ground.a6,), "2001:db8:1::/48")
    assert writer.batch(moves=(Move(both, (ground.a,)), Move((ground.a6,), None))).failures == ()
    found = routes(ground.side)
    assert gateways(found["10.1.0.0/16"]) == gateways(found["10.2.0.0/16"])
    assert gateways(found["10.1.0.0/16"]) == {("192.0.2.2", DEVICE, 1)}
    assert gateways(found["10.3.0.0/16"]) == {("192.0.2.3", DEVICE, 1)}
    assert routes(ground.side, 6) == {}


def test_objects_without_routes_are_removed(ground: Ground, object_writer: WriterProcess) -> None:
    object_writer.install((ground.a, ground.b), "10.1.0.0/16")
    objects = json.loads(ground.side.run("ip", "-j", "nexthop"))
    assert len(objects) == 3
    assert {o["protocol"] for o in objects} == {"87"}
    object_writer.install((ground.b,), "10.1.0.0/16")
    assert len(json.loads(ground.side.run("ip", "-j", "nexthop"))) == 2
    object_writer.remove("10.1.0.0/16")
    assert json.loads(ground.side.run("ip", "-j", "nexthop") or "[]") == []


def test_objects_of_a_single_route_stay_for_its_return(ground: Ground) -> None:
    """One request for each return; the next batch that is not urgent removes them."""
    with writer_in(ground.side) as writer:
        written = [install_and_remove(writer, ground.a) for _ in range(3)]
        assert written == [3, 1, 1]
        assert len(objects_of(ground.side)) == 2
        writer.batch()
        assert objects_of(ground.side) == []


def test_a_verification_removes_objects_without_routes(ground: Ground) -> None:
    with writer_in(ground.side, "--verify-interval=0.1") as writer:
        install_and_remove(writer, ground.a)
        eventually(lambda: expect_no_objects(ground.side))


def install_and_remove(writer: WriterProcess, hop: NextHop) -> int:
    """Install a route and remove it, both urgent; returns the requests of the installation."""
    single = Routes(MAIN, wire("10.1.0.0/16"))
    confirmed = writer.batch(routes=(SetRoutes((hop,), (single,)),), urgent=True)
    writer.batch(removed=(single,), urgent=True)
    return confirmed.written


def objects_of(side: Namespace) -> list[object]:
    objects: list[object] = json.loads(side.run("ip", "-j", "nexthop") or "[]")
    return objects


def expect_no_objects(side: Namespace) -> None:
    assert objects_of(side) == []


def test_the_kernel_reaches_no_such_gateway(ground: Ground, writer: WriterProcess) -> None:
    unusable = hop("203.0.113.9", ground.device)
    (failure,) = writer.install((unusable,), "10.1.0.0/16", "10.2.0.0/16").failures
    assert failure.reason is Reason.UNUSABLE_NEXT_HOP
    assert failure.text
    assert failure.routes == (Routes(MAIN, wire("10.1.0.0/16", "10.2.0.0/16")),)
    (gone,) = writer.install((hop("192.0.2.9", 4_000),), "10.1.0.0/16").failures
    assert gone.reason is Reason.UNUSABLE_NEXT_HOP


def test_a_failure_of_one_set_leaves_the_others_of_its_batch(
    ground: Ground, writer: WriterProcess
) -> None:
    unusable = hop("203.0.113.9", ground.device)
    writer.install((ground.b,), "10.2.0.0/16")
    confirmed = writer.batch(
        routes=(
            SetRoutes((unusable,), (Routes(MAIN, wire("10.1.0.0/16", "10.2.0.0/16")),)),
            SetRoutes((ground.a,), (Routes(MAIN, wire("10.3.0.0/16")),)),
        )
    )
    assert len(confirmed.failures) == 1
    # What stood there is wrong by now.
    assert set(routes(ground.side)) == {"10.3.0.0/16"}
