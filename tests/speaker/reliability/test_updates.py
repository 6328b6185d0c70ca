"""Malformed UPDATEs (H32 to H47): routes are withdrawn as RFC 7606 requires, few reset the session.

Sent to an engine whose other session must not be affected; the tests of the decoders are in
tests/speaker/message and tests/speaker/attribute.
"""

from __future__ import annotations

import itertools

import pytest

from speaker.api import SessionError
from speaker.attribute import encode_attribute
from speaker.capability import AddPath
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.message import KEEPALIVE, RefreshKind, RouteRefresh, frame_message
from tests.speaker.hostile import (
    AS_PATH,
    ATTACKER_ASN,
    BASIC,
    HOP_6,
    INSTANCE,
    LOCAL_ASN,
    MANDATORY,
    NEXT_HOP,
    ORIGIN,
    PREFIX,
    PREFIX_6,
    REACH,
    RICH,
    SEEDS,
    UNREACH,
    Arena,
    open_of,
    update,
)

HELD = "10.1.0.0/24"
HELD_6 = "fd00:1::/32"


def established(profile: str = "plain", **settings: object) -> Arena:
    offered = RICH if profile == "rich" else BASIC
    arena = Arena(profile, **settings).reach("Established", offered)  # type: ignore[arg-type]
    assert arena.status().established
    return arena


def stays_up(arena: Arena, octets: bytes) -> Arena:
    arena.send(octets)
    assert arena.status().established, arena.status().reason
    assert arena.notification is None
    arena.check()
    return arena


def reset_by(octets: bytes, profile: str = "plain") -> tuple[int, int]:
    """Send what ends the session; code and subcode of the NOTIFICATION."""
    arena = established(profile)
    arena.send(octets)
    assert arena.connection in arena.closed
    assert not arena.received()
    arena.check()
    assert arena.notification is not None
    return arena.notification[:2]


def path(*asns: int, kind: int = 2) -> bytes:
    return bytes((kind, len(asns))) + b"".join(asn.to_bytes(4, "big") for asn in asns)


def with_path(value: bytes) -> bytes:
    return update(ORIGIN + encode_attribute(0x40, 2, value) + NEXT_HOP, PREFIX)


def with_hop(hop: bytes) -> bytes:
    return update(ORIGIN + AS_PATH + encode_attribute(0x40, 3, hop), PREFIX)


def with_hop_6(hop: bytes) -> bytes:
    reach = encode_attribute(0x80, 14, b"\0\2\1" + bytes((len(hop),)) + hop + b"\0" + PREFIX_6)
    return update(ORIGIN + AS_PATH + reach)


@pytest.mark.parametrize(
    "body",
    [b"\0\x01\0\0", b"\xff\xff\0\0", b"\0\0\0\x01", b"\0\0\xff\xff", b"\0\1\0\0\1", b"\0\0\0"],
)
def test_h32_lengths_beyond_the_end_reset_the_session(body: bytes) -> None:
    assert reset_by(frame_message(2, body)) in ((3, 1), (1, 2))


@pytest.mark.parametrize(
    "tail",
    [
        b"\x40",
        b"\x40\x01",
        b"\x40\x01\x01",
        b"\x50\x01\x00",
        b"\xd0\x08\x00\x04\0\0",
        b"\xc0\x08\xff\0\0\0\1",
        b"\x10\x63\x00",
    ],
)
def test_h33_an_overrun_of_the_attributes_withdraws_the_routes(tail: bytes) -> None:
    """RFC 7606 section 4."""
    arena = stays_up(established(), update(MANDATORY, PREFIX))
    assert HELD in arena.received()
    stays_up(arena, update(MANDATORY + tail, PREFIX))
    assert HELD not in arena.received()


ATTRIBUTES = {
    "origin": (0x40, 1, b"\0"),
    "as-path": (0x40, 2, path(ATTACKER_ASN)),
    "next-hop": (0x40, 3, b"\x0a\0\0\2"),
    "med": (0x80, 4, bytes(4)),
    "local-pref": (0x40, 5, bytes(4)),
    "atomic-aggregate": (0x40, 6, b""),
    "aggregator": (0xC0, 7, b"\0\0\0\1\x0a\0\0\2"),
    "communities": (0xC0, 8, bytes(4)),
    "originator-id": (0x80, 9, b"\x0a\0\0\2"),
    "cluster-list": (0x80, 10, b"\x0a\0\0\2"),
    "extended-communities": (0xC0, 16, bytes(8)),
    "as4-path": (0xC0, 17, path(ATTACKER_ASN)),
    "as4-aggregator": (0xC0, 18, b"\0\0\0\1\x0a\0\0\2"),
    "ipv6-extended-communities": (0xC0, 25, bytes(20)),
    "aigp": (0x80, 26, b"\1\0\x0b" + bytes(8)),
    "large-communities": (0xC0, 32, bytes(12)),
    "otc": (0xC0, 35, b"\0\0\xfd\xea"),
    "prefix-sid": (0xC0, 40, b"\1\0\7" + bytes(7)),
}
REQUIRED = ("origin", "as-path", "next-hop")


@pytest.mark.parametrize("profile", ["plain", "internal"])
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_h34_an_attribute_of_another_size_with_other_flags_or_twice(
    name: str, profile: str
) -> None:
    flags, kind, value = ATTRIBUTES[name]
    required = {ATTRIBUTES[one][1]: encode_attribute(*ATTRIBUTES[one]) for one in REQUIRED}
    if profile == "internal":
        required[2] = encode_attribute(0x40, 2, b"")
    others = b"".join(octets for of, octets in required.items() if of != kind)
    arena = established(profile)
    for wrong in (
        encode_attribute(flags, kind, b""),
        encode_attribute(flags, kind, value[:-1]),
        encode_attribute(flags, kind, value + b"\0"),
        encode_attribute(flags ^ 0x80, kind, value),
        encode_attribute(flags ^ 0x40, kind, value),
        encode_attribute(flags | 0x2F, kind, value),
        encode_attribute(flags, kind, value) * 2,
        encode_attribute(flags, kind, value) + encode_attribute(flags, kind, b"\1"),
    ):
        stays_up(arena, update(others + wrong, PREFIX))


def test_h34_the_order_of_attributes_makes_no_difference() -> None:
    octets = [ORIGIN, AS_PATH, NEXT_HOP, encode_attribute(0x80, 4, b"\0\0\0\7"), UNREACH]
    arena = established()
    for order in itertools.permutations(octets):
        stays_up(arena, update(b"".join(order), PREFIX))
        assert arena.received()[HELD].med == 7
        arena.send(SEEDS["update-withdraw"])


def test_h34_an_as4_path_before_the_as_path_is_merged_with_it() -> None:
    """RFC 6793 section 4.2.3."""
    offered = tuple(c for c in BASIC if c.code != 65)
    arena = Arena().reach("Established", offered)
    short = encode_attribute(0x40, 2, b"\2\2" + ATTACKER_ASN.to_bytes(2, "big") + b"\x5b\xa0")
    as4 = encode_attribute(0xC0, 17, path(ATTACKER_ASN, 4200000001))
    for octets in (as4 + ORIGIN + short + NEXT_HOP, ORIGIN + NEXT_HOP + short + as4):
        stays_up(arena, update(octets, PREFIX))
        assert arena.received()[HELD].as_path == f"{ATTACKER_ASN} 4200000001"


@pytest.mark.parametrize("flags", [0xC0, 0x80, 0xE0], ids=["transitive", "local", "partial"])
def test_h35_an_attribute_of_any_number_and_size_leaves_the_session_up(flags: int) -> None:
    arena = established(route_set=None, export="set")
    before = arena.messages()
    for kind in range(256):
        if kind in (14, 15):
            continue
        for size in (0, 5, 255, 256, 3900):
            arena.send(update(MANDATORY + encode_attribute(flags, kind, bytes(size)), PREFIX))
        assert arena.status().established, kind
    arena.check()
    assert arena.messages() == before


@pytest.mark.parametrize(
    ("kind", "day"),
    [(28, "2023-06-02"), (40, "2025-05-20"), (23, "2023-08-29"), (35, "-"), (255, "2019-01-07")],
)
def test_h35_attributes_of_known_incidents_leave_the_session_up(kind: int, day: str) -> None:
    arena = established()
    for value in (b"", b"\0", bytes(7), bytes(300), b"\xff" * 300):
        stays_up(arena, update(MANDATORY + encode_attribute(0xC0, kind, value), PREFIX))
    assert day


def test_h36_three_hundred_attributes() -> None:
    arena = established()
    stays_up(arena, update(MANDATORY + encode_attribute(0xC0, 99, b"") * 300, PREFIX))
    assert HELD in arena.received()
    everything = b"".join(encode_attribute(0xC0, kind, b"") for kind in range(41, 256))
    stays_up(arena, update(MANDATORY + everything, PREFIX))
    assert HELD in arena.received()


@pytest.mark.parametrize("size", [0, 1, 2])
def test_h37_every_combination_of_missing_attributes_is_treated_as_withdraw(size: int) -> None:
    for there in itertools.combinations((ORIGIN, AS_PATH, NEXT_HOP), size):
        arena = stays_up(established(), update(MANDATORY, PREFIX))
        stays_up(arena, update(b"".join(there), PREFIX))
        assert not arena.received()


def test_h37_a_missing_local_pref_of_an_internal_peer_is_the_default() -> None:
    """LOCAL_PREF is discretionary (RFC 4271 section 5.1.5), RFC 7606 is about mandatory ones."""
    arena = established("internal")
    stays_up(arena, update(ORIGIN + encode_attribute(0x40, 2, b"") + NEXT_HOP, PREFIX))
    assert arena.used() == {HELD}


def test_h38_prefixes_in_both_fields() -> None:
    arena = stays_up(established(), update(REACH + MANDATORY, PREFIX))
    assert (set(arena.received()), set(arena.received(IPV6_UNICAST))) == ({HELD}, {HELD_6})
    # Without a NEXT_HOP the message is malformed, whichever field it is for.
    stays_up(arena, update(REACH + ORIGIN + AS_PATH, PREFIX))
    assert not arena.received()
    assert not arena.received(IPV6_UNICAST)


def test_h38_multiprotocol_attributes_twice_reset_the_session() -> None:
    """RFC 7606 section 3(g)."""
    assert reset_by(update(REACH + MANDATORY + REACH)) == (3, 1)
    assert reset_by(update(UNREACH + UNREACH)) == (3, 1)


def test_h38_a_reach_without_prefixes_announces_nothing() -> None:
    empty = encode_attribute(0x80, 14, b"\0\2\1\x10" + HOP_6 + b"\0")
    arena = stays_up(established(), update(ORIGIN + AS_PATH + empty))
    assert not arena.received(IPV6_UNICAST)


def test_h38_an_update_similar_to_an_end_of_rib_is_none() -> None:
    """RFC 4724 section 2: nothing else may be in it."""
    arena = established("rich")
    members = arena.engine.instance(INSTANCE).established.values()
    (inbound,) = (member.inbound for member in members if member.peer.name == "attacker")
    for octets in (
        ORIGIN + encode_attribute(0x80, 15, b"\0\2\1"),
        encode_attribute(0x80, 15, b"\0\2\1") + encode_attribute(0xC0, 99, b""),
        UNREACH,
    ):
        stays_up(arena, update(octets))
        assert not inbound.end_of_rib
    stays_up(arena, SEEDS["end-of-rib-ipv6"])
    assert inbound.end_of_rib == {IPV6_UNICAST}


@pytest.mark.parametrize("size", [0, 3, 5, 12, 15, 17, 24, 48, 255])
def test_h39_a_next_hop_of_an_impossible_length(size: int) -> None:
    assert reset_by(with_hop_6(bytes(size)))[0] == 3
    if size not in (15, 17):
        arena = stays_up(established(), with_hop(bytes(size)[:200]))
        assert not arena.received()


@pytest.mark.parametrize("hop", ["0.0.0.0", "224.0.0.1", "239.255.255.255"])
def test_h39_an_invalid_next_hop_is_treated_as_withdraw(hop: str) -> None:
    """RFC 4271 section 6.3, RFC 7606 section 7.3."""
    arena = stays_up(established(), with_hop(bytes(map(int, hop.split(".")))))
    assert not arena.received()


@pytest.mark.parametrize(
    ("hop", "reason"),
    [
        ("0.0.0.1", "the next hop is no address of a host"),
        ("127.0.0.1", "the next hop is a loopback address"),
        ("240.0.0.1", "the next hop is a multicast or reserved address"),
        ("255.255.255.255", "the next hop is a multicast or reserved address"),
        ("10.0.0.1", "the next hop is an address of this router"),
    ],
)
def test_h39_an_unusable_next_hop_makes_the_route_ineligible(hop: str, reason: str) -> None:
    arena = stays_up(established(), with_hop(bytes(map(int, hop.split(".")))))
    assert arena.received()[HELD].reason == reason
    assert not arena.used()


@pytest.mark.parametrize(
    ("hop", "reason"),
    [
        (bytes(15) + b"\1", "the next hop is a loopback address"),
        (b"\xff\x02" + bytes(13) + b"\1", "the next hop is a multicast address"),
        (bytes(10) + b"\xff\xff\x0a\0\0\1", "the next hop is an address of this router"),
        (bytes(10) + b"\xff\xff\x7f\0\0\1", "the next hop is a loopback address"),
        (bytes(10) + b"\xff\xff\x0a\0\0\2", "best"),
        (b"\xfe\x80" + bytes(13) + b"\1", "best"),
        (HOP_6 + b"\xfe\x80" + bytes(13) + b"\1", "best"),
    ],
)
def test_h39_the_same_of_ipv6(hop: bytes, reason: str) -> None:
    arena = stays_up(established(), with_hop_6(hop))
    route = arena.received(IPV6_UNICAST)[HELD_6]
    assert route.best == (reason == "best")
    assert route.best or route.reason == reason


def test_h39_an_unspecified_ipv6_next_hop_is_treated_as_withdraw() -> None:
    arena = stays_up(established(), with_hop_6(bytes(16)))
    assert not arena.received(IPV6_UNICAST)


@pytest.mark.parametrize("nlri", [b"\x21" + bytes(5), b"\xff" + bytes(32), b"\x18\x0a\1", b"\x18"])
def test_h40_invalid_prefixes_reset_the_session(nlri: bytes) -> None:
    assert reset_by(update(MANDATORY, nlri)) == (3, 10)
    assert reset_by(update(b"", b"", nlri)) == (3, 10)


@pytest.mark.parametrize("nlri", [b"\x81" + bytes(17), b"\x80" + bytes(15), b"\xff" + bytes(32)])
def test_h40_the_same_of_ipv6(nlri: bytes) -> None:
    reach = encode_attribute(0x80, 14, b"\0\2\1\x10" + HOP_6 + b"\0" + nlri)
    assert reset_by(update(ORIGIN + AS_PATH + reach))[0] == 3
    assert reset_by(update(encode_attribute(0x80, 15, b"\0\2\1" + nlri)))[0] == 3


def test_h40_trailing_bits_do_not_make_another_prefix() -> None:
    arena = stays_up(established(), update(MANDATORY, b"\x14\x0a\1\xff" + b"\x14\x0a\1\xf0"))
    assert set(arena.received()) == {"10.1.240.0/20"}
    stays_up(arena, update(b"", b"", b"\x14\x0a\1\xf7"))
    assert not arena.received()


def test_h40_a_prefix_twice_and_a_prefix_both_withdrawn_and_announced() -> None:
    """RFC 4271 section 4.3: the announcement takes precedence."""
    arena = stays_up(established(), update(MANDATORY, PREFIX * 5))
    assert arena.status().families[0].received == 1
    stays_up(arena, update(MANDATORY, PREFIX, PREFIX * 3))
    assert set(arena.received()) == {HELD}
    assert arena.used() == {HELD}


def test_h40_path_identifiers_at_both_ends_of_their_range() -> None:
    arena = established("rich")
    stays_up(arena, update(MANDATORY, bytes(4) + PREFIX + b"\xff" * 4 + PREFIX))
    assert arena.status().families[0].received == 2
    stays_up(arena, update(b"", b"", b"\xff" * 4 + PREFIX))
    assert arena.status().families[0].received == 1


def test_h40_path_identifiers_are_of_one_session_only() -> None:
    arena = established("rich")
    stays_up(arena, update(MANDATORY, b"\0\0\0\1" + PREFIX))
    arena.drop()
    arena.wait(5)
    arena.accept()
    plain = tuple(c for c in RICH if not isinstance(c, AddPath))
    arena.send(open_of(plain) + KEEPALIVE)
    stays_up(arena, update(MANDATORY, PREFIX))
    assert set(arena.received()) == {HELD}
    assert arena.status().families[0].received == 1


def test_h41_a_session_ignores_a_family_that_was_not_negotiated() -> None:
    arena = Arena().reach("Established", (BASIC[0], BASIC[2]))
    stays_up(arena, update(REACH + MANDATORY + UNREACH, PREFIX))
    assert set(arena.received()) == {HELD}
    assert not arena.received(IPV6_UNICAST)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        path(65009),
        path(0),
        path(ATTACKER_ASN, 0),
        path(ATTACKER_ASN, kind=1),
        path(ATTACKER_ASN, kind=3),
        path(ATTACKER_ASN) + path(65010, kind=4),
        path(ATTACKER_ASN, kind=0),
        path(ATTACKER_ASN, kind=5),
        path(ATTACKER_ASN, kind=255),
        b"\2\0",
        path(ATTACKER_ASN) + b"\2\0",
        b"\2\2" + ATTACKER_ASN.to_bytes(4, "big"),
        path(ATTACKER_ASN) + b"\2",
    ],
)
def test_h42_a_malformed_as_path_is_treated_as_withdraw(value: bytes) -> None:
    """RFC 7606 section 7.2, RFC 7607, RFC 5065 section 5."""
    arena = stays_up(established(), update(MANDATORY, PREFIX))
    stays_up(arena, with_path(value))
    assert not arena.received()


@pytest.mark.parametrize("value", [b"", path(ATTACKER_ASN, kind=1)], ids=["empty", "set"])
def test_h42_an_as_path_without_a_first_as_is_named_so(value: bytes) -> None:
    """RFC 4271 section 6.3."""
    arena = stays_up(established(), with_path(value))
    reason = f"AS_PATH: there is no first AS, the peer's is {ATTACKER_ASN}; for a route server"
    assert arena.status().malformed.startswith(reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (path(ATTACKER_ASN, LOCAL_ASN), "own AS in the AS path"),
        (path(ATTACKER_ASN) + path(65010, 65011, kind=1), "an AS_SET in the AS path (RFC 9774)"),
        (path(ATTACKER_ASN) + path(LOCAL_ASN, kind=1), "own AS in the AS path"),
    ],
)
def test_h42_an_ineligible_path_is_held_and_not_used(value: bytes, reason: str) -> None:
    arena = stays_up(established(), update(MANDATORY, PREFIX))
    stays_up(arena, with_path(value))
    assert arena.received()[HELD].reason == reason
    assert not arena.used()


def test_h44_a_flood_of_updates_does_not_expire_the_hold_timer_of_another_session() -> None:
    """The other peer sends KEEPALIVE every 30 s; between two of them there are thousands of flaps."""
    arena = established()
    flaps = update(MANDATORY, PREFIX) + update(b"", b"", PREFIX)
    for _ in range(20):
        for _ in range(50):
            arena.send(flaps)
        arena.wait(30)
        arena.send(KEEPALIVE)
    assert arena.status().established
    assert not arena.received()
    arena.check()


def test_h45_beginning_and_end_of_a_refresh_in_any_order() -> None:
    """RFC 7313 section 4."""
    begin = RouteRefresh(IPV4_UNICAST, RefreshKind.BEGIN).encode()
    end = RouteRefresh(IPV4_UNICAST, RefreshKind.END).encode()
    arena = stays_up(established(), update(MANDATORY, PREFIX))
    stays_up(arena, end + end)
    assert set(arena.received()) == {HELD}
    stays_up(arena, begin + begin)
    assert set(arena.received()) == {HELD}
    stays_up(arena, end)
    assert not arena.received()


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\1\0", b"\0\1\1\1x", b"\0\1\2\1xx"])
def test_h45_a_refresh_of_the_wrong_length_is_answered_with_its_own_code(body: bytes) -> None:
    """RFC 7313 section 5."""
    arena = established()
    message = frame_message(5, body)
    arena.send(message)
    assert arena.notification == (7, 1, message)
    arena.check()


def test_h45_an_unknown_subtype_and_an_orf_are_ignored() -> None:
    arena = established()
    stays_up(arena, frame_message(5, b"\0\1\7\1") + frame_message(5, b"\0\1\0\1\1\x80\xff\xff\0"))


@pytest.mark.parametrize("profile", ["plain", "rich"])
def test_h46_a_dynamic_capability_message_is_an_unknown_type(profile: str) -> None:
    arena = established(profile)
    arena.send(frame_message(6, b"\0\1\4\0\1\0\1"))
    assert arena.notification == (1, 3, b"\x06")
    arena.check()


def test_h47_an_update_behind_the_keepalive_has_the_negotiated_path_identifiers() -> None:
    arena = Arena("rich").reach("OpenSent")
    arena.send(open_of(RICH) + KEEPALIVE + update(MANDATORY, b"\0\0\0\1" + PREFIX))
    assert arena.status().families[0].received == 1
    assert set(arena.received()) == {HELD}
    arena.check()


def test_h47_an_update_behind_the_open_is_an_fsm_error() -> None:
    arena = Arena().reach("OpenSent")
    arena.send(open_of() + update(MANDATORY, PREFIX) + KEEPALIVE)
    assert arena.notification == (5, 2, b"")
    arena.check()


def test_a_flood_of_errors_is_not_a_flood_of_reports() -> None:
    arena = established()
    for _ in range(1_000):
        arena.send(update(MANDATORY + encode_attribute(0xC0, 8, b"x"), PREFIX))
    reports = [event for event in arena.events if isinstance(event, SessionError)]
    assert 1 <= len(reports) <= 10
    assert "number 512 of this session" in reports[-1].text
    assert {report.data for report in reports} == {"c0080178"}
    assert all(report.survived for report in reports)


def test_the_last_error_remains_visible_after_the_session_is_restored() -> None:
    arena = established()
    arena.send(update(MANDATORY, b"\x21" + bytes(5)))
    (report,) = (event for event in arena.events if isinstance(event, SessionError))
    assert (report.sent, report.code, report.subcode, report.survived) == (True, 3, 10, False)
    assert "a prefix of 33 bits" in arena.status().reason
    arena.wait(5)
    arena.reach("Established")
    assert arena.status().established
    assert arena.status().last_error == f"sent: {report.text}"
