"""Another configuration while routes are kept without a session: it permits all of them."""

from __future__ import annotations

import gc
import struct
import tracemalloc

import msgspec
import pytest

from speaker.api import (
    GracefulRestart,
    Match,
    PeerConfig,
    Policy,
    PrefixRule,
    RouteAttributes,
    Term,
)
from speaker.attribute import encode_attribute
from speaker.capability import GracefulRestartCapability, LongLivedGracefulRestart
from speaker.engine.inputs import EnablePeer, SetPeer, ShutDownPeer, TimersDue
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, AttributeType, Role
from speaker.message import KEEPALIVE
from tests.speaker.network import INSTANCE, Network
from tests.speaker.raw import FAMILIES, REMOTE, REMOTE_ASN, Raw, open_message, update

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
RESTART = GracefulRestart(restart_time=60, stale_time=30)
LONG = GracefulRestart(restart_time=60, stale_time=30, long_lived_time=1000)
BOTH = ((IPV4_UNICAST, True), (IPV6_UNICAST, True))
OPEN = open_message(
    capabilities=(
        *FAMILIES,
        GracefulRestartCapability(60, notification=True, families=BOTH),
        LongLivedGracefulRestart(tuple((family, True, 5000) for family, _ in BOTH)),
    )
)
OTHER_ASN, LOCAL_ASN_LATER = 65009, 65077
OURS, THEIRS, LOOPED = "10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24"
ONE = Policy(terms=(Term(match=Match(prefixes=(PrefixRule(OURS),))),))


def attributes(*asns: int) -> bytes:
    """Attributes with an AS path."""
    path = bytes((2, len(asns))) + struct.pack(f"!{len(asns)}I", *asns)
    return (
        encode_attribute(0x40, AttributeType.ORIGIN, b"\0")
        + encode_attribute(0x40, AttributeType.AS_PATH, path)
        + encode_attribute(0x40, AttributeType.NEXT_HOP, bytes((10, 0, 0, 2)))
    )


class Kept(Raw):
    """A peer with graceful restart that has announced three routes."""

    def __init__(self, **settings: object) -> None:
        defaults = {"graceful_restart": RESTART, "enforce_first_as": False}
        self.settings: dict[str, object] = {
            **defaults,
            "passive": True,
            "import_": "all",
            **settings,
        }
        super().__init__(**self.settings)
        self.to_established(OPEN)
        self.announce()

    def announce(self) -> None:
        """Announce the table and its end."""
        self.send(update(attributes(REMOTE_ASN, 64999), bytes((24, 10, 1, 0))))
        self.send(update(attributes(OTHER_ASN), bytes((24, 10, 2, 0))))
        self.send(update(attributes(REMOTE_ASN, LOCAL_ASN_LATER), bytes((24, 10, 3, 0))))
        self.send(update(b""))

    def configure(self, **changes: object) -> None:
        """Change settings of the peer."""
        self.settings |= changes
        peer = PeerConfig(name="p", address=REMOTE, peer_asn=REMOTE_ASN, **self.settings)  # type: ignore[arg-type]
        self.give(SetPeer(INSTANCE, peer))

    @property
    def used(self) -> set[str]:
        """The prefixes in use."""
        views = self.engine.views.routes_available(INSTANCE, IPV4_UNICAST)
        return {view.prefix for view in views if view.best}


ALL = {OURS, THEIRS, LOOPED}
CHANGES: list[tuple[dict[str, object], set[str]]] = [
    ({"import_": ONE}, {OURS}),
    ({"import_": "none"}, set()),
    ({"enforce_first_as": True}, {OURS, LOOPED}),
    ({"local_asn": LOCAL_ASN_LATER}, {OURS, THEIRS}),
    ({"role": Role.PROVIDER}, ALL),
    ({"families": (IPV6_UNICAST,)}, set()),
    ({"graceful_restart": None}, set()),
    ({"import_": ONE, "enforce_first_as": True}, {OURS}),
    ({"import_": ONE, "local_asn": LOCAL_ASN_LATER}, {OURS}),
    ({"disabled_reason": "no Secret"}, set()),
]


@pytest.mark.parametrize(("changes", "left"), CHANGES)
@pytest.mark.parametrize("up", [True, False])
def test_a_setting_that_resets_the_session_applies_to_the_routes_that_outlive_it(
    changes: dict[str, object], left: set[str], *, up: bool
) -> None:
    peer = Kept()
    assert peer.used == ALL
    if not up:
        peer.drop()
    peer.configure(**changes, hold_time=60)
    assert peer.used == left


@pytest.mark.parametrize(("changes", "left"), [item for item in CHANGES if item[1] != set()])
def test_routes_that_are_announced_again_are_judged_by_the_new_setting(
    changes: dict[str, object], left: set[str]
) -> None:
    peer = Kept()
    peer.configure(**changes, hold_time=60)
    peer.wait(5)
    peer.to_established(OPEN)
    assert peer.used <= left
    peer.announce()
    assert peer.used == left
    assert sum(family.stale for family in peer.status.families) == 0


def test_a_setting_changes_twice_before_the_peer_is_back() -> None:
    peer = Kept()
    peer.drop()
    peer.configure(enforce_first_as=True, import_=ONE)
    assert peer.used == {OURS}
    peer.configure(enforce_first_as=False, import_="all")
    # The peer has to announce again what was malformed.
    assert peer.used == {OURS, LOOPED}
    peer.wait(5)
    peer.to_established(OPEN)
    peer.announce()
    assert peer.used == ALL


def test_rejected_routes_are_withdrawn_from_other_peers_at_the_reload() -> None:
    """Import "all" to a policy that rejects, and another hold time, towards a peer with the N bit."""
    network = Network()
    a, b, c = (
        network.host(name, address, asn)
        for name, address, asn in (("a", A, 65001), ("b", B, 65002), ("c", C, 65003))
    )
    both: dict[str, object] = {"graceful_restart": RESTART, "import_": "all", "export": "all"}
    a.peer(PeerConfig(name="b", address=B, passive=True, **both))  # type: ignore[arg-type]
    c.peer(PeerConfig(name="b", address=B, passive=True, **both))  # type: ignore[arg-type]
    b.peer(PeerConfig(name="a", address=A, **both))  # type: ignore[arg-type]
    b.peer(PeerConfig(name="c", address=C, **both))  # type: ignore[arg-type]
    a.routes({OURS: RouteAttributes(), THEIRS: RouteAttributes()})
    network.run(10)
    assert set(c.available(IPV4_UNICAST)) == {OURS, THEIRS}
    b.peer(PeerConfig(name="a", address=A, hold_time=60, **{**both, "import_": ONE}))  # type: ignore[arg-type]
    network.run(0.1)
    assert set(b.available(IPV4_UNICAST)) == set(c.available(IPV4_UNICAST)) == {OURS}
    network.run(60)
    assert b.status("a").established
    assert set(c.available(IPV4_UNICAST)) == {OURS}
    assert b.received(IPV4_UNICAST, "a").keys() == {OURS, THEIRS}


def test_a_policy_reaches_all_routes_of_a_table_that_is_applied_in_slices() -> None:
    peer = Kept()
    count = 5000
    for start in range(0, count, 500):
        nlri = b"".join(
            bytes((24, 20, number >> 8, number & 255)) for number in range(start, start + 500)
        )
        peer.send(update(attributes(REMOTE_ASN), nlri))
    assert len(peer.used) == count + len(ALL)
    peer.configure(import_=Policy(terms=(Term(),)), hold_time=60)
    peer.configure(import_=ONE)
    peer.engine_only(TimersDue())
    assert peer.engine.instance(INSTANCE).outbound.applies_policies
    peer.to_established(OPEN)
    for _ in range(4):
        peer.flush()
    assert peer.used == {OURS}
    assert not peer.engine.updates_pending


def test_a_provider_becomes_a_customer() -> None:
    """OTC may have been attached here (RFC 9234): such routes are announced again first."""
    peer = Kept(role=Role.CUSTOMER)
    assert peer.used == ALL
    peer.configure(role=Role.PROVIDER)
    assert peer.used == set()
    peer.wait(5)
    peer.to_established(OPEN)
    peer.announce()
    assert peer.used == ALL


def test_routes_of_a_peer_that_is_away_are_removed_as_it_is_shut_down() -> None:
    peer = Kept()
    peer.drop()
    peer.give(ShutDownPeer(INSTANCE, "p", ""))
    assert peer.used == set()
    peer.give(EnablePeer(INSTANCE, "p"))
    peer.to_established(OPEN)
    peer.announce()
    assert peer.used == ALL


def test_a_shorter_long_lived_time_applies_to_routes_that_are_long_lived() -> None:
    peer = Kept(graceful_restart=LONG)
    peer.drop()
    peer.wait(100)
    assert peer.used == ALL
    peer.configure(graceful_restart=msgspec.structs.replace(LONG, long_lived_time=50))
    peer.wait(49)
    assert peer.used == ALL
    peer.wait(2)
    assert peer.used == set()


def test_routes_are_not_long_lived_any_more_where_that_is_switched_off() -> None:
    peer = Kept(graceful_restart=LONG)
    peer.drop()
    peer.wait(100)
    peer.configure(graceful_restart=RESTART)
    assert peer.used == set()


def test_a_peer_that_restarts_with_another_hold_time_has_the_same_paths() -> None:
    peer = Kept()
    table = peer.engine.instance(INSTANCE).outbound.loc[IPV4_UNICAST]
    (before,) = table.paths(bytes((24, 10, 1, 0)))
    peer.drop()
    peer.to_open_confirm(
        open_message(
            hold_time=30,
            capabilities=(
                *FAMILIES,
                GracefulRestartCapability(60, restarting=True, notification=True, families=BOTH),
            ),
        )
    )
    peer.send(KEEPALIVE)
    peer.announce()
    assert table.paths(bytes((24, 10, 1, 0))) == (before,)


@pytest.mark.parametrize(
    ("varies", "octets"),
    [
        # The log of received prefixes has 256 surplus ones at most.
        (False, 200),
        # Cached attributes are counted with 512 octets and eight for each on the wire, up to a bound.
        (True, 900),
    ],
)
def test_hundreds_of_restarts_take_the_memory_of_a_few(varies: bool, octets: int) -> None:
    """Every second session ends before its End-of-RIB; varying routes have a new AS path each."""
    peer = Kept(hold_time=0)

    def restart(number: int) -> None:
        # Without the pauses that follow short sessions.
        peer.wait(1000)
        peer.drop()
        peer.wait(5)
        peer.to_established(OPEN)
        path = attributes(REMOTE_ASN, 70_000 + (number if varies else 0))
        peer.send(update(path, bytes((24, 10, 1, 0))))
        if number % 2:
            peer.announce()
        # What the test itself has collected.
        peer.events.clear()
        peer.closed.clear()

    def memory() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        for number in range(60):
            restart(number)
        before = memory()
        for number in range(60, 360):
            restart(number)
        assert (memory() - before) / 300 < octets
    finally:
        tracemalloc.stop()
    assert peer.used == ALL
