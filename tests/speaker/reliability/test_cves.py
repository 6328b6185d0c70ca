"""Known vulnerabilities of BGP speakers, one test for each record: what was sent, and to which one.

The records are public: CVE numbers, and GO numbers of the Go vulnerability database. Every one ends
with the referee's check: no error of ours, and another session that did not notice.

Records of BMP are with its codec. Records without a test, and why they cannot be met here:

========================  ============================================================================
CVE-2018-12066            BIRD: a path mask typed by the operator; there is no such language here
CVE-2021-26928            BIRD in Calico: sessions without a password; a matter of configuration
CVE-2024-55553            FRR: a valid RPKI-to-router message; there is no RTR client here
CVE-2025-43970            GoBGP: an MRT file; MRT is not read here
CVE-2025-43973            GoBGP: an RTR message; as above
CVE-2026-7736             GoBGP: an entry of an MRT file; as above
========================  ============================================================================
"""

from __future__ import annotations

import pytest

from speaker.api import Confederation, Match, Policy, Term
from speaker.attribute import encode_attribute
from speaker.capability import Capability
from speaker.message import KEEPALIVE, RouteRefresh, frame_message
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.speaker.hostile import (
    AS_PATH,
    BASIC,
    HOP_6,
    MANDATORY,
    NEXT_HOP,
    ORIGIN,
    PREFIX,
    RICH,
    STATES,
    UNREACH,
    Arena,
    open_of,
    update,
)

HELD = "10.1.0.0/24"
"""`PREFIX` as text."""


def established(profile: str = "plain") -> Arena:
    offered: tuple[Capability, ...] = RICH if profile == "rich" else BASIC
    arena = Arena(profile).reach("Established", offered)
    assert arena.status().established
    return arena


def stays_up(arena: Arena, octets: bytes) -> Arena:
    """Send what must not cost the session."""
    arena.send(octets)
    assert arena.status().established
    assert arena.notification is None
    arena.check()
    return arena


def refused_open(octets: bytes) -> tuple[int, int]:
    """Send an OPEN that has to be refused; its code and subcode."""
    arena = Arena().reach("OpenSent")
    arena.send(octets)
    assert not arena.status().established
    assert arena.connection in arena.closed
    arena.check()
    assert arena.notification is not None
    return arena.notification[:2]


def opened(capabilities: bytes) -> Arena:
    """Bring a session up with capabilities given as octets."""
    arena = Arena().reach("OpenSent")
    parameters = bytes((len(capabilities) + 2, 2, len(capabilities))) + capabilities
    arena.send(open_with(parameters) + KEEPALIVE)
    arena.check()
    return arena


def open_with(parameters: bytes) -> bytes:
    """Return an OPEN with optional parameters given as octets, their length included."""
    return frame_message(1, open_of(())[19:28] + parameters)


def with_attribute(kind: int, value: bytes, flags: int = 0xC0) -> bytes:
    return update(MANDATORY + encode_attribute(flags, kind, value), PREFIX)


AS4 = b"\x41\x04\0\0\xfd\xea"
IPV4 = b"\x01\x04\0\1\0\1"


# FRR


def test_cve_2019_5892_attribute_255() -> None:
    """A research experiment announced an attribute with an unassigned type."""
    for size in (0, 1, 255, 1000):
        arena = stays_up(established(), with_attribute(255, bytes(size)))
        assert HELD in arena.received()


def test_cve_2022_36440_the_as_number_is_looked_for_before_the_open_is_checked() -> None:
    for capabilities in (b"\x41\x02\0\1", b"\x41\x00", b"\x41\x05\0\0\0\1\2"):
        assert opened(IPV4 + capabilities).status().established
    assert refused_open(open_with(b"\x03\2\1\x41")) == (2, 0)


def test_cve_2022_37032_a_dynamic_capability_message() -> None:
    arena = established()
    arena.send(frame_message(6, b"\0\xff\xff\xff\1\1\xff\xff"))
    assert arena.notification == (1, 3, b"\x06")
    arena.check()


def test_cve_2022_37035_what_follows_the_message_that_ends_a_session() -> None:
    """There the rest of the packet was handled while the NOTIFICATION was being sent."""
    arena = established()
    arena.send(update(MANDATORY, b"\x21" + bytes(5)) + update(MANDATORY, PREFIX) + KEEPALIVE * 50)
    assert arena.notification is not None
    assert arena.notification[:2] == (3, 10)
    assert arena.messages()[-1][0] == 3
    assert not arena.received()
    arena.check()


@pytest.mark.parametrize(
    "parameters", [b"\xff\xff", b"\xff\xff\0", b"\xff\xff\0\1\2", b"\xff\xff\0\2\2\0"]
)
def test_cve_2022_40302_a_parameter_of_the_extended_form_that_is_cut(parameters: bytes) -> None:
    """Two octets of a header were checked, three were read (RFC 9072)."""
    assert refused_open(open_with(parameters)) == (2, 0)


@pytest.mark.parametrize("parameters", [b"\x02\xff\xff", b"\x03\xff\xff\0", b"\xff\xfe\0\0"])
def test_cve_2022_40318_a_parameter_of_type_255(parameters: bytes) -> None:
    assert refused_open(open_with(parameters))[0] == 2


@pytest.mark.parametrize("parameters", [b"", b"\x02", b"\xff", b"\xff\xff", b"\xff\xff\0"])
def test_cve_2022_43681_an_open_that_ends_at_a_length(parameters: bytes) -> None:
    code, subcode = refused_open(open_with(parameters))
    assert (code, subcode) == ((1, 2) if not parameters else (2, 0))


@pytest.mark.parametrize("size", [1, 6, 8, 13, 60])
def test_cve_2023_31489_a_long_lived_graceful_restart_capability_of_another_length(
    size: int,
) -> None:
    assert opened(IPV4 + AS4 + bytes((71, size)) + bytes(size)).status().established


@pytest.mark.parametrize(
    "value", [b"\5\0\0", b"\5\0\3\0\1\xff", b"\5\0\x15" + bytes(20), b"\1\0\7"]
)
def test_cve_2023_31490_a_prefix_sid_with_a_tlv_that_cannot_be(value: bytes) -> None:
    arena = stays_up(established(), with_attribute(40, value))
    assert HELD in arena.received()


def _not_spoken(family: bytes, nlri: bytes, hop: bytes = b"") -> None:
    """Announce and withdraw prefixes of a family that was not negotiated."""
    reach = encode_attribute(0x80, 14, family + bytes((len(hop),)) + hop + b"\0" + nlri)
    unreach = encode_attribute(0x80, 15, family + nlri)
    arena = established()
    stays_up(arena, update(MANDATORY + reach, PREFIX))
    stays_up(arena, update(ORIGIN + AS_PATH + reach))
    stays_up(arena, update(unreach))
    assert set(arena.received()) == {HELD}


def test_cve_2023_38406_flowspec_nlri_of_length_0() -> None:
    _not_spoken(b"\0\1\x85", b"\0")


def test_cve_2023_38407_labelled_nlri_that_is_read_past_its_end() -> None:
    _not_spoken(b"\0\1\4", b"\x18\0\0\1", b"\x0a\0\0\2")


def test_cve_2023_38802_a_tunnel_encapsulation_that_is_corrupted() -> None:
    """It came through routers that did not look at it."""
    for value in (b"\0", b"\0\1\0", b"\0\1\0\xff", b"\0\x0d\0\4\1\xff\xff\xff\xff"):
        stays_up(established(), with_attribute(23, value))


def test_cve_2023_41358_prefixes_and_no_attributes() -> None:
    arena = established()
    stays_up(arena, update(MANDATORY, PREFIX))
    stays_up(arena, update(b"", PREFIX))
    assert not arena.received()


@pytest.mark.parametrize("value", [b"\1", b"\1\0", b"\1\0\0", b"\1\0\2", b"\1\0\x0b", b"\2\0"])
def test_cve_2023_41359_an_aigp_attribute_that_ends_in_its_header(value: bytes) -> None:
    arena = stays_up(established(), with_attribute(26, value, 0x80))
    assert HELD in arena.received()


@pytest.mark.parametrize("orf", [b"\1", b"\1\x80", b"\1\x80\xff", b"\1\x80\xff\xff", b"\1\x80\0\1"])
def test_cve_2023_41360_a_route_refresh_with_an_orf_that_is_cut(orf: bytes) -> None:
    stays_up(established(), RouteRefresh(IPV4_UNICAST, 0, orf).encode())


@pytest.mark.parametrize("value", [b"\x41" + b"v" * 10, b"\xff", b"\xff" + b"v" * 60])
def test_cve_2023_41361_a_software_version_longer_than_its_capability(value: bytes) -> None:
    assert opened(IPV4 + AS4 + bytes((75, len(value))) + value).status().established


def test_cve_2023_41909_flowspec_without_attributes() -> None:
    reach = encode_attribute(0x80, 14, b"\0\1\x85\0\0\3\1\x08\x0a")
    arena = established()
    arena.send(update(reach))
    arena.check()


@pytest.mark.parametrize("size", [0, 1, 4, 15, 17, 31, 33, 48, 200, 255])
def test_cve_2023_46752_a_next_hop_length_that_disagrees_with_the_rest(size: int) -> None:
    arena = established()
    arena.send(
        update(ORIGIN + AS_PATH + encode_attribute(0x80, 14, b"\0\2\1" + bytes((size,)) + HOP_6))
    )
    assert arena.notification is not None
    assert arena.notification[0] == 3
    arena.check()


@pytest.mark.parametrize("profile", ["plain", "rich"])
def test_cve_2023_46753_only_an_unknown_attribute_with_graceful_restart(profile: str) -> None:
    nlri = PREFIX if profile == "plain" else b"\0\0\0\1" + PREFIX
    arena = stays_up(established(profile), update(encode_attribute(0xC0, 99, b"x"), nlri))
    assert not arena.received()


def test_cve_2023_47234_withdrawals_beside_prefixes_without_attributes() -> None:
    arena = stays_up(established(), update(UNREACH, PREFIX))
    assert not arena.received()


@pytest.mark.parametrize(
    "attributes",
    [
        encode_attribute(0x80, 15, b"\0\2\1") + encode_attribute(0xC0, 7, b"\0"),
        encode_attribute(0x80, 15, b"\0\1\1") + encode_attribute(0x40, 6, b"x"),
        encode_attribute(0x80, 15, b"\0\2\1") + encode_attribute(0xC0, 99, b""),
    ],
)
def test_cve_2023_47235_an_end_of_rib_with_something_malformed_in_it(attributes: bytes) -> None:
    arena = established("rich")
    arena.send(update(MANDATORY, b"\0\0\0\1" + PREFIX))
    arena.send(update(attributes))
    arena.check()


@pytest.mark.parametrize("flags", [0x80, 0x40, 0x00])
def test_cve_2024_31948_a_prefix_sid_with_wrong_flags(flags: int) -> None:
    for value in (b"", b"\1\0\7" + bytes(7), b"\3\0\6" + bytes(6)):
        stays_up(established(), with_attribute(40, value, flags))


def test_cve_2024_31949_a_dynamic_capability_that_does_not_advance() -> None:
    for value in (b"\0\1\0", b"\0\1\4\0\1\0\1", b"\0\x40\0"):
        arena = established()
        arena.send(frame_message(6, value))
        assert arena.notification == (1, 3, b"\x06")
        arena.check()


def test_cve_2024_44070_a_tunnel_tlv_longer_than_the_message() -> None:
    arena = stays_up(established(), with_attribute(23, b"\0\1\xff\xff"))
    assert not arena.received()


def test_cve_2026_37457_a_flowspec_operator_list_that_is_one_too_long() -> None:
    _not_spoken(b"\0\1\x85", b"\xf0\xff" + b"\3" + b"\1\1" * 126 + b"\x81\1")


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\1\1\4" + bytes(4) + b"\0\3\0", b"\0\3\0\xff"])
def test_cve_2026_37459_a_next_hop_characteristic_shorter_than_its_header(value: bytes) -> None:
    arena = stays_up(established(), with_attribute(39, value))
    assert HELD in arena.received()


# BIRD


@pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 255])
def test_cve_2019_16159_a_shutdown_communication_of_sufficient_length(length: int) -> None:
    for there in (0, length // 2, length):
        arena = established()
        arena.send(frame_message(3, b"\6\2" + bytes((length,)) + b"A" * there))
        assert arena.notification is None
        assert arena.connection in arena.closed
        arena.check()


@pytest.mark.parametrize("state", [*STATES, "delayed"])
def test_cve_2025_59688_a_notification_at_any_moment(state: str) -> None:
    for body in (b"", b"\6", b"\6\2", b"\6\7", b"\6\x09\6\2", b"\2\1\0\4", b"\2\7"):
        arena = Arena("delayed" if state == "delayed" else "plain")
        arena.reach("OpenSent" if state == "delayed" else state)
        before = arena.messages()
        arena.send(frame_message(3, body) * 2)
        assert arena.messages() == before
        arena.wait(300)
        arena.check()


def test_cve_2026_49943_a_long_path_before_a_path_filter() -> None:
    """More hops than a filter had room for, in an extended message."""
    pattern = Policy(terms=(Term(match=Match(as_path="* 65002 * 65002 * 65002 * 64512")),))
    for hops in (749, 2049, 16_000):
        arena = Arena("rich", import_=pattern).reach("Established", RICH)
        segment = b"\2\xff" + (65002).to_bytes(4, "big") * 255
        rest = hops % 255
        path = segment * (hops // 255) + bytes((2, rest)) + (65002).to_bytes(4, "big") * rest
        stays_up(
            arena,
            update(ORIGIN + encode_attribute(0x40, 2, path) + NEXT_HOP, b"\0\0\0\1" + PREFIX),
        )
        assert not arena.used()
        assert bool(arena.received()) == (hops < 750)


def test_cve_2026_112112_ipv6_flowspec() -> None:
    _not_spoken(b"\0\2\x85", b"\x05\1\x20\0\xfd\0")


# OpenBGPD


def test_cve_2023_38283_a_wrong_attribute_length_from_a_remote_as() -> None:
    for kind, flags in ((8, 0xC0), (16, 0xC0), (32, 0xC0), (7, 0xC0), (4, 0x80)):
        for size in (0, 1, 3, 5, 7, 9, 13):
            stays_up(established(), with_attribute(kind, bytes(size), flags))


# GoBGP


def test_cve_2023_46565_errors_without_end_on_one_session() -> None:
    arena = established()
    for _ in range(200):
        arena.send(with_attribute(8, b"\0"))
        arena.send(update(encode_attribute(0x40, 1, b"\7") + AS_PATH + NEXT_HOP, PREFIX))
    assert arena.status().established
    arena.check()


@pytest.mark.parametrize("length", [0, 1, 19])
def test_cve_2025_43972_flowspec_shorter_than_its_fields(length: int) -> None:
    _not_spoken(b"\0\2\x85", bytes(length) or b"\0")


def test_cve_2025_43971_a_software_version_of_length_0() -> None:
    assert opened(IPV4 + AS4 + b"\x4b\0").status().established
    assert opened(IPV4 + AS4 + b"\x4b\1\0").status().established


def test_cve_2026_7735_an_aigp_attribute_shorter_than_its_tlv() -> None:
    for size in range(12):
        stays_up(
            established(), with_attribute(26, b"\1\0\x0b"[:size] + bytes(max(0, size - 3)), 0x80)
        )


def test_cve_2026_37461_an_ipv6_extended_community_where_eight_octets_are() -> None:
    for kind, size in ((25, 8), (25, 19), (25, 21), (16, 20), (16, 12)):
        arena = stays_up(established(), with_attribute(kind, bytes(size)))
        assert not arena.received()
    stays_up(established(), with_attribute(25, bytes(20)))


def test_go_2026_5954_an_empty_as_path_with_confederation_checks() -> None:
    """From an internal peer it is a route of our own AS."""
    arena = Arena("internal", confederation=Confederation(64999, (65010,))).reach("Established")
    octets = (
        ORIGIN + encode_attribute(0x40, 2, b"") + NEXT_HOP + encode_attribute(0x40, 5, bytes(4))
    )
    stays_up(arena, update(octets, PREFIX))
    arena = established()
    stays_up(arena, update(ORIGIN + encode_attribute(0x40, 2, b"") + NEXT_HOP, PREFIX))
    assert not arena.received()


# Others


def test_cve_2023_4481_an_attribute_that_was_passed_on_by_others() -> None:
    """Juniper, and Nokia of the same day: deprecated and rare attributes, malformed, transitive."""
    for kind in (11, 12, 13, 19, 20, 21, 28, 30, 31, 33, 36, 37, 128, 129, 241):
        for size in (0, 1, 7):
            stays_up(established(), with_attribute(kind, bytes(size), 0xE0))


def test_cve_2023_40457_a_bgp_ls_attribute_that_is_malformed() -> None:
    for value in (b"\0", b"\4\0\0\xff", bytes(5)):
        arena = stays_up(established(), with_attribute(29, value, 0x80))
        assert HELD in arena.received()


def test_cve_2009_2055_an_as4_path_that_is_malformed() -> None:
    """IOS-XR reset its sessions when others passed it on."""
    for value in (b"\2", b"\2\1\0\0\0", b"\3\1\0\0\xfd\xea", b"\2\0", b"\7\1\0\0\0\1"):
        arena = stays_up(established(), with_attribute(17, value))
        assert HELD in arena.received()


def test_cve_2019_15989_attributes_with_impossible_values() -> None:
    for flags, kind, value in (
        (0xC0, 18, bytes(8)),
        (0xC0, 18, bytes(3)),
        (0xC0, 7, bytes(8)),
        (0x80, 9, bytes(3)),
        (0x80, 10, bytes(5)),
        (0xC0, 22, bytes(4)),
    ):
        stays_up(established(), with_attribute(kind, value, flags))


def test_cve_2026_93345_a_labelled_vpn_prefix_shorter_than_its_label_and_distinguisher() -> None:
    for length in (0, 1, 24, 87):
        _not_spoken(b"\0\1\x80", bytes((length,)) + bytes((length + 7) // 8), bytes(12))


def test_the_attribute_of_2010_08_27_is_passed_on_as_it_was() -> None:
    """Attribute 99, legal and unknown; IOS-XR corrupted it on its way to others."""
    arena = established()
    value = bytes(range(256)) * 3
    stays_up(arena, with_attribute(99, value))
    received = b"".join(body for kind, body in arena.messages(arena.quiet) if kind == 2)
    assert value in received
    assert b"\xf0\x63\x03\x00" + value in received


def test_the_attribute_of_2025_05_20_goes_no_further() -> None:
    """A Prefix-SID of zeros, carried by those who did not look, fatal to those who did."""
    arena = established()
    stays_up(arena, with_attribute(40, bytes(7)))
    received = b"".join(body for kind, body in arena.messages(arena.quiet) if kind == 2)
    assert PREFIX in received
    assert b"\xc0\x28" not in received
    assert b"\xe0\x28" not in received


def test_ipv6_next_hops_and_withdrawals_are_not_confused_by_what_is_not_spoken() -> None:
    """After all of the above a session still does what it is for."""
    arena = established()
    reach = encode_attribute(0x80, 14, b"\0\2\1\x10" + HOP_6 + b"\0\x20\xfd\0\0\1")
    stays_up(arena, update(ORIGIN + AS_PATH + reach))
    assert set(arena.received(IPV6_UNICAST)) == {"fd00:1::/32"}
