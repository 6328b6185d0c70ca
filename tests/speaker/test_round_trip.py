"""What is written is read as it was, and what was read is written as it came: every value of the wire.

The first half of the proof that the codecs are right; the other, hostile octets, is in `fuzz` and
`reliability`.
"""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from speaker.attribute import (
    PathAttributes,
    decode_attributes,
    encode_attribute,
    encode_attributes,
    frame_attributes,
)
from speaker.capability import Capability, decode_capabilities, encode_capabilities
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.message import (
    HEADER_SIZE,
    Notification,
    Open,
    RouteRefresh,
    Update,
    UpdateDecoder,
    decode_open,
)
from speaker.negotiated import Negotiated
from speaker.nlri import PathNlri, decode_add_path, decode_prefixes, encode_add_path
from speaker.peer.message_stream import MessageStream
from speaker.rib import pack
from tests.speaker import strategies as s
from tests.support.examples import examples

IBGP = Negotiated(ebgp=False, as4=True, extended_message=True)
BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A machine that does something else meanwhile is no fault of the values."""
BOTH = frozenset({IPV4_UNICAST, IPV6_UNICAST})


def test_every_capability_has_a_strategy() -> None:
    assert set(s.CAPABILITY_KINDS) == set(get_args(Capability))


def test_every_attribute_has_a_strategy() -> None:
    assert {*s.ATTRIBUTE_FIELDS, "next_hop"} == set(PathAttributes.__struct_fields__)


@pytest.mark.parametrize("family", [IPV4_UNICAST, IPV6_UNICAST], ids=str)
@settings(BUSY, max_examples=examples(40))
@given(data=st.data())
def test_nlri(family: Family, data: st.DataObject) -> None:
    """RFC 4271 section 4.3, RFC 7911 section 3."""
    plain = data.draw(st.lists(s.prefixes(family), max_size=12))
    assert decode_prefixes(b"".join(plain), family.afi) == plain
    paths = data.draw(st.lists(s.paths(family), max_size=12))
    assert decode_add_path(b"".join(encode_add_path(paths)), family.afi) == paths


@pytest.mark.parametrize("kind", s.CAPABILITY_KINDS, ids=lambda kind: kind.__name__)
@settings(BUSY, max_examples=examples(20))
@given(data=st.data())
def test_capability(kind: type, data: st.DataObject) -> None:
    """RFC 5492 section 4."""
    value = data.draw(s.CAPABILITY_KINDS[kind])
    octets = encode_capabilities([value])
    (found,) = decode_capabilities(octets)
    assert found == value
    assert str(found).isprintable()
    assert hash(found) == hash(value)
    assert encode_capabilities([found]) == octets


@pytest.mark.parametrize("field", s.ATTRIBUTE_FIELDS)
@settings(BUSY, max_examples=examples(20))
@given(data=st.data())
def test_attribute(field: str, data: st.DataObject) -> None:
    value = data.draw(s.ATTRIBUTE_FIELDS[field])
    _read_and_written_alike(PathAttributes(**{field: value}), as4=True)  # type: ignore[arg-type]


@settings(BUSY, max_examples=examples(40))
@given(s.ATTRIBUTES)
def test_attributes_together(attributes: PathAttributes) -> None:
    _read_and_written_alike(attributes, as4=True)


@settings(BUSY, max_examples=examples(40))
@given(s.ATTRIBUTES)
def test_attributes_over_a_session_with_two_octet_as_numbers(attributes: PathAttributes) -> None:
    """RFC 6793 section 4.2: AS4_PATH and AS4_AGGREGATOR bring back what did not fit.

    Confederation segments are not in AS4_PATH, so that large numbers in them come back as AS_TRANS,
    and they are not where they were in a path that needs one: such paths leave no confederation.
    """
    if any(asn > 0xFFFF for _, asns in attributes.as_path for asn in asns):
        path = s.joined([segment for segment in attributes.as_path if segment.kind < 3])
        attributes = replace(attributes, as_path=path)
    _read_and_written_alike(attributes, as4=False)


def _read_and_written_alike(attributes: PathAttributes, *, as4: bool) -> None:
    session = replace(IBGP, as4=as4)
    octets = b"".join(encode_attributes(attributes, as4=as4))
    raws, overrun = frame_attributes(octets)
    block = decode_attributes(raws, session)
    assert overrun is None
    assert block.faults == ()
    assert block.attributes == attributes
    assert hash(block.attributes) == hash(attributes)
    assert b"".join(encode_attributes(block.attributes, as4=as4)) == octets


# Messages


@settings(BUSY, max_examples=examples(50))
@given(s.OPENS)
def test_open(value: Open) -> None:
    """RFC 4271 section 4.2, RFC 9072."""
    octets = value.encode()
    assert decode_open(octets[HEADER_SIZE:]) == value
    assert decode_open(octets[HEADER_SIZE:]).encode() == octets


@settings(BUSY, max_examples=examples(40))
@given(s.NOTIFICATIONS)
def test_notification(value: Notification) -> None:
    """RFC 4271 section 4.5."""
    octets = value.encode()
    found = Notification.decode(octets[HEADER_SIZE:])
    assert found == value
    assert found.encode() == octets
    assert str(found).isprintable()


@settings(BUSY, max_examples=examples(40))
@given(s.ROUTE_REFRESHES)
def test_route_refresh(value: RouteRefresh) -> None:
    """RFC 2918 section 3, RFC 7313 section 3.2."""
    octets = value.encode()
    assert RouteRefresh.decode(octets[HEADER_SIZE:]) == value


@settings(BUSY, max_examples=examples(40))
@given(st.lists(s.MESSAGES, max_size=5))
def test_messages_behind_one_another(messages: list[bytes]) -> None:
    framed = MessageStream(65535).messages(b"".join(messages))
    assert [HEADER_SIZE + len(body) for _, bodies in framed for body in bodies] == [
        len(m) for m in messages
    ]


def _encode(
    family: Family, attributes: PathAttributes, nlri: list[bytes], *, mp: bool
) -> list[bytes]:
    before, behind = encode_attributes(attributes, as4=True)
    if mp:
        return pack.announce_mp(family, attributes.next_hop, before + behind, nlri, 65535)
    hop = encode_attribute(0x40, 3, attributes.next_hop)
    return pack.announce(before + hop + behind, nlri, 65535)


def _decode(message: bytes, session: Negotiated) -> Update:
    ((_, (body,)),) = MessageStream(65535).messages(message)
    return UpdateDecoder(session).decode(body)


def _path_nlri(
    data: st.DataObject, family: Family, *, add_path: bool
) -> tuple[list[bytes], list[PathNlri]]:
    if not add_path:
        return data.draw(st.lists(s.prefixes(family), min_size=1, max_size=10)), []
    return [], data.draw(st.lists(s.paths(family), min_size=1, max_size=10))


EVERY_WAY = pytest.mark.parametrize("add_path", [False, True], ids=["plain", "add-path"])
EVERY_FIELD = pytest.mark.parametrize(
    ("family", "mp"),
    [(IPV4_UNICAST, False), (IPV4_UNICAST, True), (IPV6_UNICAST, True)],
    ids=["ipv4", "ipv4-mp", "ipv6"],
)
"""Where prefixes stand in an UPDATE."""


@EVERY_WAY
@EVERY_FIELD
@settings(BUSY, max_examples=examples(20))
@given(attributes=s.ATTRIBUTES, data=st.data())
def test_update_that_announces(
    family: Family, mp: bool, add_path: bool, attributes: PathAttributes, data: st.DataObject
) -> None:
    """RFC 4271 section 4.3, RFC 4760 section 3."""
    hop = data.draw(s.NEXT_HOPS[family])
    attributes = replace(attributes, next_hop=hop)
    plain, paths = _path_nlri(data, family, add_path=add_path)
    wire = encode_add_path(paths) if add_path else plain
    session = replace(IBGP, add_path_receive=BOTH if add_path else frozenset())
    (message,) = _encode(family, attributes, wire, mp=mp)
    found = _decode(message, session)
    (reach,) = found.announced
    assert (found.faults, found.withdrawn, found.end_of_rib) == ((), (), None)
    assert reach == (family, attributes, plain, paths)
    again = _encode(
        reach.family, reach.attributes, encode_add_path(reach.paths) or reach.nlri, mp=mp
    )
    assert again == [message]


@EVERY_WAY
@EVERY_FIELD
@settings(BUSY, max_examples=examples(20))
@given(data=st.data())
def test_update_that_withdraws(
    family: Family, mp: bool, add_path: bool, data: st.DataObject
) -> None:
    """RFC 4271 section 4.3, RFC 4760 section 4."""
    plain, paths = _path_nlri(data, family, add_path=add_path)
    wire = encode_add_path(paths) if add_path else plain
    session = replace(IBGP, add_path_receive=BOTH if add_path else frozenset())
    (message,) = pack.withdraw_mp(family, wire, 65535) if mp else pack.withdraw(wire, 65535)
    found = _decode(message, session)
    assert found.withdrawn == ((family, plain, paths),)
    assert (found.announced, found.faults, found.end_of_rib) == ((), (), None)


@pytest.mark.parametrize("family", [IPV4_UNICAST, IPV6_UNICAST], ids=str)
def test_end_of_rib(family: Family) -> None:
    """RFC 4724 section 2."""
    assert _decode(pack.end_of_rib(family), IBGP).end_of_rib == family
