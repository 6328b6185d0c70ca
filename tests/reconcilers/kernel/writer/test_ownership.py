"""Whose route is it: routes of others stay, whatever protocol, table and metric they have."""

from __future__ import annotations

import json

import pytest

from reconcilers.kernel.writer.protocol_messages import (
    BLACKHOLE,
    Cause,
    Change,
    Changed,
    Freed,
    Goodbye,
    Health,
    Read,
    Reason,
    Routes,
    SetRoutes,
    Settings,
)
from tests.reconcilers.kernel.writer.conftest import OTHER, Ground
from tests.support.kernel_writer import (
    MAIN,
    MAIN6,
    WriterProcess,
    gateways,
    routes,
    wire,
    writer_in,
)
from tests.support.netns import DEVICE
from tests.support.paused import paused

pytestmark = [pytest.mark.netns, pytest.mark.program]
FOREIGN = f"10.1.0.0/16 via 192.0.2.9 dev {DEVICE} proto 186 metric 20"
FOREIGN6 = f"2001:db8:1::/48 via 2001:db8:a::9 dev {DEVICE} proto 186 metric 20"
THEIRS = {("192.0.2.9", DEVICE, 1)}


def occupied(prefix: str = "10.1.0.0/16") -> tuple[Change, ...]:
    return (Change(Reason.OCCUPIED, (Routes(MAIN, wire(prefix)),)),)


def missing(*prefixes: str) -> tuple[Change, ...]:
    return (Change(Reason.MISSING, (Routes(MAIN, wire(*prefixes)),)),)


def test_a_foreign_route_with_our_key_is_not_overwritten(
    ground: Ground, writer: WriterProcess
) -> None:
    ground.side.batch(f"route add {FOREIGN}", f"route add {FOREIGN6}")
    for next_hop, prefix in ((ground.a, "10.1.0.0/16"), (ground.a6, "2001:db8:1::/48")):
        (failure,) = writer.install((next_hop,), prefix).failures
        assert failure.reason is Reason.OCCUPIED
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == THEIRS
    assert gateways(routes(ground.side, 6)["2001:db8:1::/48"]) == {("2001:db8:a::9", DEVICE, 1)}
    # Neither is it removed, when ours is no longer wanted.
    writer.remove("10.1.0.0/16")
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == THEIRS


def test_the_place_of_a_foreign_route_that_goes_is_reported(
    ground: Ground, writer: WriterProcess
) -> None:
    ground.side.batch(f"route add {FOREIGN}")
    writer.install((ground.a,), "10.1.0.0/16")
    ground.side.batch("route del 10.1.0.0/16")
    assert writer.expect(Freed).routes == (Routes(MAIN, wire("10.1.0.0/16")),)
    assert writer.install((ground.a,), "10.1.0.0/16").failures == ()


def test_a_route_of_ours_that_another_program_removed_is_reported(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.install((ground.a,), "10.1.0.0/16", "10.2.0.0/16")
    writer.install((ground.a6,), "2001:db8:1::/48")
    ground.side.batch("route del 10.1.0.0/16")
    assert writer.expect(Changed) == Changed(Cause.EVENT, missing("10.1.0.0/16"))
    ground.side.batch("route del 2001:db8:1::/48")
    (change,) = writer.expect(Changed).changes
    assert change == Change(Reason.MISSING, (Routes(MAIN6, wire("2001:db8:1::/48")),))
    writer.install((ground.a,), "10.1.0.0/16")
    assert set(routes(ground.side)) == {"10.1.0.0/16", "10.2.0.0/16"}


def test_a_route_that_another_program_put_in_place_of_ours_is_its_own(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.install((ground.a,), "10.1.0.0/16")
    ground.side.batch(f"route replace {FOREIGN}")
    assert writer.expect(Changed) == Changed(Cause.EVENT, occupied())
    (failure,) = writer.install((ground.b,), "10.1.0.0/16").failures
    assert failure.reason is Reason.OCCUPIED
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == THEIRS


def test_a_route_that_another_program_adds_beside_ours_stays_when_ours_goes(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.install((ground.a,), "10.1.0.0/16")
    ground.side.batch(f"route append {FOREIGN}")
    writer.remove("10.1.0.0/16")
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == THEIRS


def test_a_new_writer_adopts_what_the_former_one_installed(
    ground: Ground, writer: WriterProcess
) -> None:
    ground.side.batch(
        f"route add {FOREIGN}", f"route add 10.9.0.0/16 via 192.0.2.9 dev {DEVICE} proto 186"
    )
    sets = ((ground.a,), (ground.a, ground.b._replace(weight=2)), BLACKHOLE)
    for number, next_hops in enumerate(sets, 2):
        writer.install(next_hops, f"10.{number}.0.0/16")
    writer.install((ground.a6, ground.local6), "2001:db8:2::/48")
    writer.install((ground.local6,), "10.7.0.0/16")
    before = ground.side.run("ip", "-d", "route", "show", "table", "all")
    objects = ground.side.run("ip", "-d", "nexthop")

    writer.kill()
    writer.start()
    listed = writer.connect()
    expected = {
        ((ground.a,), "10.2.0.0/16"),
        (tuple(sorted((ground.a, ground.b._replace(weight=2)))), "10.3.0.0/16"),
        (BLACKHOLE, "10.4.0.0/16"),
        ((ground.local6,), "10.7.0.0/16"),
    }
    assert sorted(s for s in listed if s.routes[0].table == MAIN) == sorted(
        SetRoutes(next_hops, (Routes(MAIN, wire(prefix)),)) for next_hops, prefix in expected
    )
    for next_hops, prefix in expected:
        assert writer.install(next_hops, prefix).written == 0
    assert writer.install((ground.local6, ground.a6), "2001:db8:2::/48").written == 0
    assert ground.side.run("ip", "-d", "route", "show", "table", "all") == before
    assert ground.side.run("ip", "-d", "nexthop") == objects
    # Stale routes are removed on request, and no other route.
    writer.remove("10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16", "10.7.0.0/16", "10.1.0.0/16")
    assert set(routes(ground.side)) == {"10.1.0.0/16", "10.9.0.0/16"}


def test_routes_of_one_kind_are_adopted_by_a_writer_of_the_other(ground: Ground) -> None:
    with writer_in(ground.side, "--nexthop-objects=never") as plain:
        plain.install((ground.a, ground.b), "10.1.0.0/16")
    with writer_in(ground.side) as objects:
        assert objects.install((ground.a, ground.b), "10.1.0.0/16").written == 0
        objects.install((ground.b,), "10.2.0.0/16")
    with writer_in(ground.side, "--nexthop-objects=never") as plain:
        assert plain.install((ground.b,), "10.2.0.0/16").written == 0
        plain.install((ground.a,), "10.2.0.0/16")
        assert gateways(routes(ground.side)["10.2.0.0/16"]) == {("192.0.2.2", DEVICE, 1)}
        plain.remove("10.1.0.0/16", "10.2.0.0/16")
    assert routes(ground.side) == {}
    assert ground.side.run("ip", "nexthop") == ""


@pytest.mark.parametrize("keep", [True, False])
def test_the_end_of_an_agent_leaves_routes_or_cleans_up(
    ground: Ground, writer: WriterProcess, *, keep: bool
) -> None:
    ground.side.batch(f"route add {FOREIGN}")
    writer.connect(Settings(keep=keep))
    writer.install((ground.a, ground.b), "10.2.0.0/16")
    writer.install((ground.a6,), "2001:db8:2::/48")
    writer.send(Goodbye())
    with pytest.raises(ConnectionError):
        writer.expect(Freed)
    assert set(routes(ground.side)) == {"10.1.0.0/16"} | ({"10.2.0.0/16"} if keep else set())
    assert bool(routes(ground.side, 6)) is keep
    if not keep:
        assert ground.side.run("ip", "nexthop") == ""


def test_a_pod_that_ends_cleans_up_whichever_of_its_containers_ends_first(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.connect(Settings(keep=False))
    writer.install((ground.a,), "10.2.0.0/16")
    writer.process.terminate()
    assert writer.install((ground.b,), "10.3.0.0/16").failures == ()
    writer.send(Goodbye())
    assert writer.process.wait(60) == 0
    assert routes(ground.side) == {}


def test_objects_of_other_programs_stay(ground: Ground, object_writer: WriterProcess) -> None:
    ground.side.batch(
        f"nexthop add id 7 via 192.0.2.7 dev {DEVICE} proto 11",
        f"nexthop add id 1471807489 via 192.0.2.7 dev {DEVICE} proto 11",  # one of our numbers
        "route add 10.7.0.0/16 nhid 7 proto 186 metric 20",
    )
    object_writer.install((ground.a,), "10.1.0.0/16")
    object_writer.connect(Settings(keep=False))
    object_writer.send(Goodbye())
    with pytest.raises(ConnectionError):
        object_writer.expect(Freed)
    assert {o["id"] for o in json.loads(ground.side.run("ip", "-j", "nexthop"))} == {7, 1471807489}
    assert set(routes(ground.side)) == {"10.7.0.0/16"}


def test_a_link_that_goes_down_takes_routes_without_a_message(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.install((ground.a,), "10.1.0.0/16", "10.2.0.0/16")
    writer.install((ground.b,), "10.3.0.0/16")
    ground.side.cable(up=False)
    found = writer.expect(Changed)
    assert found.changes == missing("10.1.0.0/16", "10.2.0.0/16")
    assert set(routes(ground.side)) == {"10.3.0.0/16"}
    (failure,) = writer.install((ground.a,), "10.1.0.0/16").failures
    assert failure.reason is Reason.UNUSABLE_NEXT_HOP
    ground.side.cable(up=True)
    assert writer.install((ground.a,), "10.1.0.0/16").failures == ()
    assert set(routes(ground.side)) == {"10.1.0.0/16", "10.3.0.0/16"}


def test_a_link_that_goes_down_takes_one_of_several_next_hops(
    ground: Ground, object_writer: WriterProcess
) -> None:
    object_writer.install((ground.a, ground.b), "10.1.0.0/16")
    ground.side.batch(f"link set {OTHER} down")
    (change,) = object_writer.expect(Changed).changes
    assert change == Change(Reason.DIFFERENT, (Routes(MAIN, wire("10.1.0.0/16")),))
    assert object_writer.install((ground.a,), "10.1.0.0/16").failures == ()
    assert gateways(routes(ground.side)["10.1.0.0/16"]) == {("192.0.2.2", DEVICE, 1)}


def test_objects_that_another_program_flushes_are_made_again(
    ground: Ground, object_writer: WriterProcess
) -> None:
    object_writer.install((ground.a,), "10.1.0.0/16")
    ground.side.run("ip", "nexthop", "flush")
    assert object_writer.expect(Changed).changes == missing("10.1.0.0/16")
    assert object_writer.install((ground.a,), "10.1.0.0/16").failures == ()
    assert set(routes(ground.side)) == {"10.1.0.0/16"}


def test_reading_a_table_back_reports_what_differs(ground: Ground, writer: WriterProcess) -> None:
    writer.install((ground.a,), "10.1.0.0/16", "10.2.0.0/16")
    writer.send(Read(5))
    (found,) = writer.listing()
    assert found == SetRoutes((ground.a,), (Routes(MAIN, wire("10.1.0.0/16", "10.2.0.0/16")),))


@pytest.mark.parametrize(("interval", "cause"), [("60", Cause.EVENT), ("0.02", Cause.VERIFICATION)])
def test_routes_that_go_without_a_message_are_noticed(
    ground: Ground, interval: str, cause: Cause
) -> None:
    """The last address of an interface takes its routes, as far as they are not by an object."""
    flags = (f"--verify-interval={interval}", "--nexthop-objects=never")
    with writer_in(ground.side, *flags) as writer:
        writer.install((ground.a,), "10.1.0.0/16", "10.2.0.0/16")
        writer.install((ground.b,), "10.3.0.0/16")
        ground.side.batch(f"addr del 192.0.2.1/24 dev {DEVICE}")
        assert writer.expect(Changed) == Changed(cause, missing("10.1.0.0/16", "10.2.0.0/16"))
        assert set(routes(ground.side)) == {"10.3.0.0/16"}
        writer.send(Read(5))
        assert writer.listing() == [SetRoutes((ground.b,), (Routes(MAIN, wire("10.3.0.0/16")),))]


def test_notifications_that_are_lost_lead_to_reading_everything_again(
    ground: Ground, writer: WriterProcess
) -> None:
    ground.side.batch(f"route add {FOREIGN}")
    (failure,) = writer.install((ground.a,), "10.1.0.0/16").failures
    assert failure.reason is Reason.OCCUPIED
    writer.install((ground.a,), *(f"10.{n}.0.0/16" for n in range(2, 101)))
    with paused(writer.process.pid):
        # More than the buffer of notifications holds, and then what is not notified any more.
        ground.side.batch(
            *(f"route add 172.16.{n & 255}.0/24 dev {DEVICE} metric {n}" for n in range(15_000)),
            "route del 10.2.0.0/16",
            f"route del {FOREIGN}",
        )
    found = writer.expect(Changed)
    assert found.cause is Cause.OVERFLOW
    assert found.changes == missing("10.2.0.0/16")
    assert writer.expect(Freed).routes == (Routes(MAIN, wire("10.1.0.0/16")),)


@pytest.mark.parametrize(
    ("within", "text"),
    [
        (("setpriv", "--bounding-set", "-net_admin"), "lacks the capability NET_ADMIN"),
        (("unshare", "--user", "--map-root-user"), "belongs to another user namespace"),
    ],
    ids=["no-capability", "namespace-of-others"],
)
def test_a_writer_without_permission_has_the_reason(
    ground: Ground, within: tuple[str, ...], text: str
) -> None:
    with writer_in(ground.side, within=within) as powerless:
        assert text in powerless.expect(Health).problem
        (failure,) = powerless.install((ground.a,), "10.1.0.0/16").failures
        assert failure.reason is Reason.NOT_PERMITTED
        assert routes(ground.side) == {}


def test_files_of_the_kernel_that_are_read_only_are_no_hindrance(ground: Ground) -> None:
    """As in a container that is not privileged."""
    read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"
    try_it = "! echo 1 2>/dev/null >/proc/sys/net/ipv4/ip_forward"
    script = f'{read_only} && {try_it} && exec "$@"'
    within = ("unshare", "--mount", "sh", "-c", script, "sh")
    with writer_in(ground.side, within=within) as writer:
        assert writer.expect(Health).problem == ""
        assert writer.install((ground.a,), "10.1.0.0/16").failures == ()
        assert list(routes(ground.side)) == ["10.1.0.0/16"]
