"""Routes of others that concern the agent: how BGP next hops resolve."""

from __future__ import annotations

import ipaddress
import signal
from typing import cast

import pytest

from reconcilers.kernel.options import MAIN_TABLE
from reconcilers.kernel.writer import foreign_routes
from reconcilers.kernel.writer.foreign_routes import ForeignRoutes
from reconcilers.kernel.writer.netlink import Kernel
from reconcilers.kernel.writer.protocol_messages import (
    IPV4,
    KernelRoute,
    NextHopSet,
    Resolution,
    Resolved,
    RouteTable,
    Track,
    TrackedAddress,
)
from tests.reconcilers.kernel.writer.conftest import Ground
from tests.support.kernel_writer import WriterProcess, hop, wire
from tests.support.netns import DEVICE

pytestmark = [pytest.mark.netns, pytest.mark.program]


def tracked(text: str, table: int = MAIN_TABLE) -> TrackedAddress:
    return TrackedAddress(table, ipaddress.ip_address(text).packed)


def resolved(writer: WriterProcess) -> dict[TrackedAddress, KernelRoute | None]:
    return dict(writer.expect(Resolved).resolutions)


def hops_of(route: KernelRoute | None) -> NextHopSet:
    assert route is not None
    return route.next_hops


def test_nothing_is_resolved_again_without_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each batch resolutions are read: a change does not wait for the next hops of all peers."""
    foreign = ForeignRoutes(cast("Kernel", None), lambda *_: False)
    foreign.track([tracked("192.0.2.77")])
    assert foreign.resolutions() == (Resolution(tracked("192.0.2.77"), None),)
    monkeypatch.delattr(foreign_routes, "_best")
    assert foreign.resolutions() == ()


def test_next_hops_resolve_by_the_most_specific_foreign_route(
    ground: Ground, object_writer: WriterProcess
) -> None:
    near, far, far6, nowhere = map(
        tracked, ("192.0.2.77", "203.0.113.9", "2001:db8:77::1", "198.18.0.1")
    )
    object_writer.install((ground.a,), "203.0.113.0/28", "0.0.0.0/0")
    object_writer.send(Track((near, far, far6, nowhere)))
    found = resolved(object_writer)
    connected = found[near]
    assert connected is not None
    assert connected.prefix == wire("192.0.2.0/24")
    assert connected.next_hops == (hop("", ground.device),)
    # Ours resolve none, so that no route leads to itself.
    assert (found[far], found[far6], found[nowhere]) == (None, None, None)

    ground.side.batch(f"route add default via 192.0.2.9 dev {DEVICE}")
    found = resolved(object_writer)
    default = KernelRoute(
        RouteTable(MAIN_TABLE, IPV4, 0), wire("0.0.0.0/0"), 3, (hop("192.0.2.9", ground.device),)
    )
    assert found == {far: default, nowhere: default}

    ground.side.batch("route add 203.0.113.0/24 via 198.51.100.9 metric 7")
    found = resolved(object_writer)
    assert hops_of(found[far]) == (hop("198.51.100.9", ground.other),)
    ground.side.batch("route add 203.0.113.0/24 via 198.51.100.8 metric 5")
    found = resolved(object_writer)
    assert hops_of(found[far]) == (hop("198.51.100.8", ground.other),)
    ground.side.batch("route del 203.0.113.0/24 metric 5", "route del 203.0.113.0/24 metric 7")
    while resolved(object_writer).get(far) != default:
        pass

    ground.side.batch(f"route add 2001:db8:77::/48 via fe80::9 dev {DEVICE}")
    found = resolved(object_writer)
    assert hops_of(found[far6]) == (hop("fe80::9", ground.device),)


def test_a_link_that_is_down_resolves_nothing(ground: Ground, object_writer: WriterProcess) -> None:
    near = tracked("192.0.2.77")
    object_writer.send(Track((near,)))
    assert resolved(object_writer)[near] is not None
    ground.side.cable(up=False)
    assert resolved(object_writer) == {near: None}
    ground.side.cable(up=True)
    assert resolved(object_writer)[near] is not None


@pytest.mark.parametrize(
    "lines",
    [
        (f"link set {DEVICE} down", f"link set {DEVICE} up"),
        (f"link set {DEVICE} master bridge", f"link set {DEVICE} nomaster"),
        (f"link set {DEVICE} master bridge",),
    ],
    ids=["down and up", "in a bridge and out", "in a bridge"],
)
def test_a_link_that_has_routes_again_resolves_again(
    ground: Ground, object_writer: WriterProcess, lines: tuple[str, ...]
) -> None:
    ground.side.batch("link add bridge type bridge")
    near = tracked("192.0.2.77")
    object_writer.send(Track((near,)))
    found = resolved(object_writer)[near]
    assert found is not None
    # It finds all notifications at once.
    object_writer.process.send_signal(signal.SIGSTOP)
    ground.side.batch(*lines)
    object_writer.process.send_signal(signal.SIGCONT)
    object_writer.remove("10.9.9.0/24")
    for message in object_writer.drained():
        if isinstance(message, Resolved):
            found = dict(message.resolutions)[near]
    assert hops_of(found) == (hop("", ground.device),)


def test_tables_are_apart(ground: Ground, object_writer: WriterProcess) -> None:
    red, main = tracked("203.0.113.9", 1001), tracked("203.0.113.9")
    object_writer.send(Track((red, main)))
    assert resolved(object_writer) == {red: None, main: None}
    ground.side.batch(f"route add 203.0.113.0/24 via 192.0.2.9 dev {DEVICE} table 1001")
    found = resolved(object_writer)
    assert list(found) == [red]
    assert found[red] is not None
