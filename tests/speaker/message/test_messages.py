"""Messages: framing, the checks of RFC 4271 section 6, and hostile octets (H05 to H09, H30 to H38)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.attribute import ErrorHandling, encode_attribute
from speaker.capability import FourOctetAs, Multiprotocol, RouteRefreshCapability, Unknown
from speaker.errors import BgpError, NotificationError
from speaker.iana import CeaseSubcode
from speaker.message import (
    HEADER_SIZE,
    KEEPALIVE,
    Notification,
    Open,
    RouteRefresh,
    Update,
    UpdateDecoder,
    check_header,
    decode_open,
    frame_message,
)
from speaker.negotiated import Negotiated
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from speaker.peer.message_stream import MessageStream
from tests.speaker.hostile import ATTRIBUTES, SEEDS

SESSION = Negotiated()
ORIGIN = encode_attribute(0x40, 1, b"\0")
AS_PATH = encode_attribute(0x40, 2, b"\2\1\0\0\xfd\xe9")
NEXT_HOP = encode_attribute(0x40, 3, b"\xc0\0\2\1")
MANDATORY = ORIGIN + AS_PATH + NEXT_HOP
PREFIX = b"\x18\x0a\0\0"
OPEN = Open(
    asn=400000,
    hold_time=90,
    router_id=0xC0000201,
    capabilities=(Multiprotocol(IPV4_UNICAST), FourOctetAs(400000)),
)


def update(attributes: bytes = b"", nlri: bytes = b"", withdrawn: bytes = b"") -> bytes:
    """Make the body of an UPDATE."""
    sizes = len(withdrawn).to_bytes(2, "big"), len(attributes).to_bytes(2, "big")
    return sizes[0] + withdrawn + sizes[1] + attributes + nlri


def reach(next_hop: bytes, nlri: bytes, family: bytes = b"\0\2\1") -> bytes:
    """Make an MP_REACH_NLRI attribute."""
    return encode_attribute(0x80, 14, family + bytes((len(next_hop),)) + next_hop + b"\0" + nlri)


def code(body: bytes, session: Negotiated = SESSION) -> tuple[int, int]:
    """Decode an UPDATE that ends the session: its NOTIFICATION."""
    with pytest.raises(NotificationError) as caught:
        UpdateDecoder(session).decode(body)
    return caught.value.code, caught.value.subcode


def decode(body: bytes, session: Negotiated = SESSION) -> Update:
    """Decode an UPDATE."""
    return UpdateDecoder(session).decode(body)


# Header: RFC 4271 section 6.1


def test_h05_a_marker_that_is_not_all_ones() -> None:
    with pytest.raises(NotificationError) as caught:
        check_header(b"\0" + KEEPALIVE[1:])
    assert (caught.value.code, caught.value.subcode) == (1, 1)


@pytest.mark.parametrize(
    ("length", "kind"), [(18, 4), (20, 4), (28, 1), (22, 2), (4097, 2), (65535, 2), (4097, 9)]
)
def test_h06_h08_an_invalid_length_is_returned_in_the_data(length: int, kind: int) -> None:
    octets = b"\xff" * 16 + length.to_bytes(2, "big") + bytes((kind,))
    with pytest.raises(NotificationError) as caught:
        check_header(octets)
    assert (caught.value.code, caught.value.subcode) == (1, 2)
    assert caught.value.data == length.to_bytes(2, "big")


@pytest.mark.parametrize("kind", [0, 6, 7, 255])
def test_h07_h46_an_unknown_type_is_returned_in_the_data(kind: int) -> None:
    with pytest.raises(NotificationError) as caught:
        check_header(frame_message(kind, b""))
    assert (caught.value.code, caught.value.subcode, caught.value.data) == (1, 3, bytes((kind,)))


def test_extended_messages_are_for_updates_only() -> None:
    """RFC 8654 section 4."""
    long = frame_message(2, bytes(5000))
    assert check_header(long, 0, 65535) == (2, 5019)
    with pytest.raises(NotificationError):
        check_header(frame_message(1, bytes(5000)), 0, 65535)


# OPEN: RFC 4271 section 6.2


def test_an_open_is_decoded_as_it_was_encoded() -> None:
    assert decode_open(OPEN.encode()[HEADER_SIZE:]) == OPEN


def test_many_capabilities_need_the_extended_form() -> None:
    """RFC 9072."""
    many = Open(
        asn=1,
        hold_time=0,
        router_id=1,
        capabilities=tuple(Unknown(200, bytes(100)) for _ in range(5)),
    )
    octets = many.encode()[HEADER_SIZE:]
    assert octets[9:11] == b"\xff\xff"
    assert decode_open(octets) == many


@pytest.mark.parametrize("length", [1, 4, 254, 255])
def test_the_extended_form_is_recognized_by_its_type_not_by_its_length(length: int) -> None:
    """RFC 9072 section 2: the length in one octet is ignored, also where the long one is small."""
    parameters = bytes((length, 255)) + b"\0\5" + b"\2\0\2\2\0"
    found = decode_open(b"\4\0\1\0\x5a\1\1\1\1" + parameters)
    assert found.capabilities == (RouteRefreshCapability(),)


def test_the_plain_form_has_at_most_255_octets_of_parameters() -> None:
    """RFC 9072 section 2: the form of RFC 4271 goes as far as its length does."""
    found = Open(
        asn=1, hold_time=0, router_id=1, capabilities=(Unknown(200, bytes(249)), Unknown(201, b""))
    )
    octets = found.encode()[HEADER_SIZE:]
    assert octets[9:11] == b"\xff\2"
    assert decode_open(octets) == found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"\3" + bytes(9), (2, 1)),  # H20
        (b"\4\0\0\0\x5a\1\1\1\1\0", (2, 2)),  # H21: AS 0
        (b"\4\0\1\0\x5a\0\0\0\0\0", (2, 3)),  # H22
        (b"\4\0\1\0\1\1\1\1\1\0", (2, 6)),  # H23
        (b"\4\0\1\0\x5a\1\1\1\1\2\1\0", (2, 4)),  # H24: parameter 1
        (b"\4\0\1\0\x5a\1\1\1\1\xff", (2, 0)),  # CVE-2022-43681
        (b"\4\0\1\0\x5a\1\1\1\1\xff\xff\0", (2, 0)),  # CVE-2022-40302
        (b"\4\0\1\0\x5a\1\1\1\1\4\2\4\x41\4", (2, 0)),
        (b"\4\0\1", (2, 0)),
    ],
)
def test_h20_to_h24_a_malformed_open_is_rejected(body: bytes, expected: tuple[int, int]) -> None:
    with pytest.raises(NotificationError) as caught:
        decode_open(body)
    assert (caught.value.code, caught.value.subcode) == expected


# UPDATE: RFC 4271 section 6.3, RFC 7606


def test_prefixes_are_announced_and_withdrawn() -> None:
    found = decode(update(MANDATORY, PREFIX, b"\x08\x0b"))
    (announced,) = found.announced
    assert (announced.family, announced.nlri) == (IPV4_UNICAST, [PREFIX])
    assert announced.attributes.next_hop_text == "192.0.2.1"
    assert found.withdrawn[0].nlri == [b"\x08\x0b"]
    assert found.outcome is ErrorHandling.NONE


def test_attributes_are_shared_by_messages_with_the_same_octets() -> None:
    decoder = UpdateDecoder(SESSION)
    first = decoder.decode(update(MANDATORY, PREFIX)).announced[0].attributes
    assert decoder.decode(update(MANDATORY, b"\x08\x0b")).announced[0].attributes is first
    global_ = bytes.fromhex("20010db8" + "00" * 11 + "01")
    one = decoder.decode(update(ORIGIN + AS_PATH + reach(global_, b"\x10\xfd\0")))
    two = decoder.decode(update(ORIGIN + AS_PATH + reach(global_, b"\x10\xfd\1")))
    assert one.announced[0].attributes is two.announced[0].attributes


def test_end_of_rib() -> None:
    """RFC 4724 section 2."""
    assert decode(update()).end_of_rib == IPV4_UNICAST
    assert decode(update(encode_attribute(0x80, 15, b"\0\2\1"))).end_of_rib == IPV6_UNICAST
    assert decode(update(ORIGIN + encode_attribute(0x80, 15, b"\0\2\1"))).end_of_rib is None


@pytest.mark.parametrize("missing", [ORIGIN, AS_PATH, NEXT_HOP])
def test_h37_a_missing_mandatory_attribute_is_treated_as_withdraw(missing: bytes) -> None:
    found = decode(update(MANDATORY.replace(missing, b""), PREFIX))
    assert found.outcome is ErrorHandling.TREAT_AS_WITHDRAW
    assert found.faults[0].attribute == missing[1]


def test_rfc4760_3_a_next_hop_beside_mp_reach_nlri_alone_is_ignored() -> None:
    """But not one of another length, which RFC 7606 section 7.3 treats as withdraw."""
    ipv6 = reach(bytes.fromhex("20010db8" + "00" * 11 + "01"), b"\x10\xfd\0")
    unspecified = encode_attribute(0x40, 3, bytes(4))
    found = decode(update(ORIGIN + AS_PATH + unspecified + ipv6))
    assert (found.outcome, found.announced[0].nlri) == (
        ErrorHandling.ATTRIBUTE_DISCARD,
        [b"\x10\xfd\0"],
    )
    withdrawn = ErrorHandling.TREAT_AS_WITHDRAW
    assert decode(update(ORIGIN + AS_PATH + unspecified + ipv6, PREFIX)).outcome is withdrawn
    short = encode_attribute(0x40, 3, bytes(3))
    assert decode(update(ORIGIN + AS_PATH + short + ipv6)).outcome is withdrawn
    assert code(update(ORIGIN + AS_PATH + unspecified)) == (3, 8)


def test_treat_as_withdraw_without_reachable_nlri_resets_the_session() -> None:
    """RFC 7606 section 5.2."""
    assert code(update(encode_attribute(0x40, 1, b"\3") + AS_PATH)) == (3, 6)


def test_an_mp_unreach_alone_withdraws_whatever_its_flags() -> None:
    """RFC 7606 section 5.2 resets for the errors of other attributes only."""
    found = decode(update(encode_attribute(0xC0, 15, b"\0\2\1\x10\xfd\0")))
    assert found.outcome is ErrorHandling.TREAT_AS_WITHDRAW
    assert found.withdrawn[0].nlri == [b"\x10\xfd\0"]
    assert code(update(encode_attribute(0xC0, 15, b"\0\2\1\x10\xfd\0") + ORIGIN)) == (3, 4)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        # Type, length and value of the attribute, as far as they are there.
        (encode_attribute(0x40, 1, b"\3"), (3, 6, encode_attribute(0x40, 1, b"\3"))),
        (encode_attribute(0x80, 1, b"\0"), (3, 4, encode_attribute(0x80, 1, b"\0"))),
        (encode_attribute(0x40, 3, b"\1\2"), (3, 5, encode_attribute(0x40, 3, b"\1\2"))),
        (encode_attribute(0x40, 3, bytes(4)), (3, 8, encode_attribute(0x40, 3, bytes(4)))),
        (encode_attribute(0x40, 99, b"?"), (3, 2, encode_attribute(0x40, 99, b"?"))),
        (encode_attribute(0x40, 2, b"\2\0"), (3, 11, encode_attribute(0x40, 2, b"\2\0"))),
        (encode_attribute(0x80, 14, b"\0\2"), (3, 9, encode_attribute(0x80, 14, b"\0\2"))),
        (
            encode_attribute(0x80, 15, b"\0\2\1\xff"),
            (3, 9, encode_attribute(0x80, 15, b"\0\2\1\xff")),
        ),
        (reach(bytes(16), b"\xff"), (3, 9, reach(bytes(16), b"\xff"))),
        (b"\x40\1\5\0", (3, 5, b"\x40\1\5\0")),
        (b"\x50\1\0", (3, 1, b"\x50\1\0")),
        (encode_attribute(0x80, 14, b"") * 2, (3, 1, b"")),
    ],
    ids=lambda value: value.hex() if isinstance(value, bytes) else "",
)
def test_an_update_error_names_the_attribute_in_its_data(
    attributes: bytes, expected: tuple[int, int, bytes]
) -> None:
    """RFC 4271 section 6.3, RFC 4760 section 7; without prefixes it ends the session."""
    with pytest.raises(NotificationError) as caught:
        decode(update(attributes))
    assert (caught.value.code, caught.value.subcode, caught.value.data) == expected


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        (b"\3\1\0\0\xfd\xe9", ErrorHandling.NONE),
        (b"\4\1\0\0\xfd\xe9", ErrorHandling.TREAT_AS_WITHDRAW),
        (b"\2\1\0\0\xfd\xe9", ErrorHandling.TREAT_AS_WITHDRAW),
        (b"", ErrorHandling.TREAT_AS_WITHDRAW),
        (b"\2\1\0\0\xfd\xe9\3\1\0\0\xfd\xea", ErrorHandling.TREAT_AS_WITHDRAW),
    ],
)
def test_the_path_of_another_member_as_begins_with_a_sequence_of_the_confederation(
    path: bytes, outcome: ErrorHandling
) -> None:
    """RFC 5065 section 5."""
    session = Negotiated(confederation=True)
    attributes = ORIGIN + encode_attribute(0x40, 2, path) + NEXT_HOP
    assert decode(update(attributes, PREFIX), session).outcome is outcome


def test_h32_lengths_beyond_the_message() -> None:
    assert code(b"\0\xff\0\0") == (3, 1)
    assert code(b"\0\0\0\xff") == (3, 1)
    assert code(b"\0\0") == (3, 1)


def test_h40_a_prefix_that_is_too_long_or_truncated() -> None:
    assert code(update(MANDATORY, b"\x21" + bytes(5))) == (3, 10)
    assert code(update(MANDATORY, b"\x18\x0a")) == (3, 10)


def test_h38_multiprotocol_attributes_twice() -> None:
    twice = encode_attribute(0x80, 15, b"\0\2\1") * 2
    assert code(update(twice)) == (3, 1)


@pytest.mark.parametrize("size", [0, 3, 4, 15, 17, 24, 48, 255])
def test_h39_a_next_hop_of_an_invalid_length_resets_the_session(size: int) -> None:
    assert code(update(ORIGIN + AS_PATH + reach(bytes(size), b"\x10\xfd\0")))[0] == 3


@pytest.mark.parametrize("size", [16, 32])
def test_h39_an_ipv6_next_hop_has_one_address_or_two(size: int) -> None:
    hop = bytes.fromhex("20010db8" + "00" * 11 + "01") + bytes.fromhex("fe80" + "00" * 14)
    found = decode(update(ORIGIN + AS_PATH + reach(hop[:size], b"\x10\xfd\0")))
    assert found.outcome is ErrorHandling.NONE
    assert bool(found.announced[0].attributes.link_local_text) == (size == 32)


def test_a_next_hop_without_a_global_address_is_the_link_local_one() -> None:
    """RFC 2545 section 3 does not cover it; BIRD encodes it so for unnumbered peers."""
    link_local = bytes.fromhex("fe80" + "00" * 13 + "07")
    found = decode(update(ORIGIN + AS_PATH + reach(bytes(16) + link_local, b"\x10\xfd\0")))
    assert found.outcome is ErrorHandling.NONE
    assert found.announced[0].attributes.next_hop_text == "fe80::7"
    unspecified = decode(update(ORIGIN + AS_PATH + reach(bytes(32), b"\x10\xfd\0")))
    assert unspecified.outcome is ErrorHandling.TREAT_AS_WITHDRAW


def test_an_ipv6_next_hop_of_ipv4_prefixes_has_to_be_negotiated() -> None:
    """RFC 8950."""
    hop = bytes.fromhex("20010db8" + "00" * 11 + "01")
    body = update(ORIGIN + AS_PATH + reach(hop, PREFIX, b"\0\1\1"))
    assert code(body) == (3, 9)
    session = Negotiated(extended_next_hop=frozenset({IPV4_UNICAST}))
    assert decode(body, session).announced[0].nlri == [PREFIX]


@pytest.mark.parametrize("size", [16, 24])
def test_h41_a_family_that_was_not_negotiated_is_ignored(size: int) -> None:
    """Also with a next hop of a size that no negotiated family has."""
    session = Negotiated(families=frozenset({IPV4_UNICAST}))
    hop = bytes.fromhex("20010db8" + "00" * 19 + "01")[:size]
    found = decode(update(MANDATORY + reach(hop, b"\x10\xfd\0"), PREFIX), session)
    assert found.ignored == (IPV6_UNICAST,)
    assert [part.family for part in found.announced] == [IPV4_UNICAST]


def test_path_identifiers_are_decoded_where_they_are_negotiated() -> None:
    """RFC 7911 section 3."""
    session = Negotiated(add_path_receive=frozenset({IPV4_UNICAST}))
    found = decode(update(MANDATORY, b"\0\0\0\7" + PREFIX), session)
    assert found.announced[0].paths == [(7, PREFIX)]


# NOTIFICATION and ROUTE-REFRESH


def test_a_shutdown_communication_is_shown_escaped() -> None:
    """RFC 9003."""
    sent = Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, "maintenance")
    assert str(Notification.decode(sent.encode()[HEADER_SIZE:])) == (
        "Cease / Administrative Shutdown: 'maintenance'"
    )
    hostile = Notification(6, 2, b"\x05\x1b[2J\n")
    assert hostile.communication == "\\x1b[2J\\n"
    assert Notification(6, 2, b"\xffshort").communication is None
    long = Notification.cease(CeaseSubcode.ADMINISTRATIVE_RESET, "é" * 200)
    assert len(long.data) <= 256
    assert long.communication == "é" * 127


@pytest.mark.parametrize("body", [b"", b"\6", b"\6\2", b"\xff\xff" + bytes(300)])
def test_h12_decoding_a_notification_never_fails(body: bytes) -> None:
    assert str(Notification.decode(body))


def test_a_route_refresh_of_the_wrong_length_has_its_own_error() -> None:
    """RFC 7313 section 5."""
    assert RouteRefresh.decode(RouteRefresh(IPV6_UNICAST).encode()[HEADER_SIZE:]) == RouteRefresh(
        IPV6_UNICAST
    )
    with pytest.raises(NotificationError) as caught:
        RouteRefresh.decode(b"\0\1\0")
    assert (caught.value.code, caught.value.subcode) == (7, 1)


# Hostile octets


def _each(octets: bytes) -> Iterator[tuple[int, bytes]]:
    for kind, bodies in MessageStream(65535).messages(octets):
        for body in bodies:
            yield kind, body


def _read(octets: bytes, decoder: UpdateDecoder | None = None) -> None:
    """Read whatever it is, as a session would: only the package's own errors may come out."""
    try:
        for kind, body in _each(octets):
            if kind == 1:
                decode_open(body).encode()
            elif kind == 2:
                (decoder or UpdateDecoder(SESSION)).decode(body)
            elif kind == 3:
                str(Notification.decode(body))
            elif kind == 5:
                RouteRefresh.decode(body)
    except BgpError as error:
        assert str(error)  # noqa: PT017  any BgpError will do


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
def test_h30_every_truncation(seed: bytes) -> None:
    for size in range(len(seed)):
        _read(seed[:size])
        _read(seed[:16] + max(size, 19).to_bytes(2, "big") + seed[18:size])


@pytest.mark.parametrize("kind", ["open", "update", "notification", "keepalive", "refresh"])
def test_h31_every_single_octet_changed(kind: str) -> None:
    seed = SEEDS[kind]
    decoder = UpdateDecoder(SESSION)
    for place in range(len(seed)):
        for value in range(0, 256, 1 if place >= 16 else 51):
            _read(seed[:place] + bytes((value,)) + seed[place + 1 :], decoder)


@pytest.mark.parametrize("octets", ATTRIBUTES, ids=lambda octets: f"attribute {octets[1]}")
def test_h31_every_single_octet_of_each_attribute_changed(octets: bytes) -> None:
    """Beside the least that a route needs: all values of the header, and bit by bit what follows."""
    internal, old = octets[1] in (5, 9, 10), octets[1] in (17, 18)
    decoder = UpdateDecoder(Negotiated(ebgp=not internal, as4=not old))
    seed = frame_message(2, update(octets + MANDATORY, PREFIX))
    start = HEADER_SIZE + 4
    for place in range(start, start + len(octets)):
        likely = {0, 255, *(seed[place] ^ 1 << bit for bit in range(8))}
        for value in range(256) if place < start + 3 else likely:
            _read(seed[:place] + bytes((value,)) + seed[place + 1 :], decoder)


@settings(deadline=None)
@given(st.sampled_from([1, 2, 3, 5]), st.binary(max_size=120))
def test_any_body_is_decoded_or_rejected(kind: int, body: bytes) -> None:
    _read(frame_message(kind, body))
