"""Path attributes from octets, with the error handling of RFC 7606 as values.

Total over all octets: a malformed attribute becomes an `AttributeFault` with its error handling. Only
an unknown well-known attribute raises, which resets the session (RFC 4271 section 6.3). This is the
slow path of `speaker.attribute.fast_path`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from speaker.attribute.as_path import AsPath, merge_as4
from speaker.attribute.attribute_rules import (
    ATTRIBUTE_RULES,
    OPTIONAL,
    TRANSITIVE,
    AttributeRule,
    MalformedValue,
)
from speaker.attribute.path_attributes import (
    Aggregator,
    AttributeFault,
    ErrorHandling,
    PathAttributes,
    UnknownAttribute,
)
from speaker.errors import update_error
from speaker.iana import AS_TRANS, AttributeType, UpdateSubcode
from speaker.negotiated import Negotiated

_EXTENDED_LENGTH: Final = 0x10
_PARTIAL: Final = 0x20
_BOTH: Final = OPTIONAL | TRANSITIVE
_DISCARD: Final = ErrorHandling.ATTRIBUTE_DISCARD
_WITHDRAW: Final = ErrorHandling.TREAT_AS_WITHDRAW


class RawAttribute(NamedTuple):
    """One attribute as framed by its header, not yet decoded."""

    flags: int
    type: int
    value: bytes
    octets: bytes
    """The whole attribute, header included."""


class DecodedAttributes(NamedTuple):
    """The path attributes field of an UPDATE, without MP_REACH_NLRI and MP_UNREACH_NLRI."""

    attributes: PathAttributes
    present: frozenset[int]
    """The types that are present and without a fault."""
    faults: tuple[AttributeFault, ...]


def frame_attributes(data: bytes) -> tuple[list[RawAttribute], AttributeFault | None]:
    """Split a path attributes field by the attributes' headers (RFC 4271 section 4.3).

    Returns the attributes before an overrun, and the overrun as a fault (RFC 7606 section 4), or
    None.
    """
    attributes: list[RawAttribute] = []
    position, end = 0, len(data)
    while position < end:
        header = 4 if data[position] & _EXTENDED_LENGTH else 3
        if position + header > end:
            rule = f"{end - position} octets left, an attribute's header has {header}"
            subcode = UpdateSubcode.MALFORMED_ATTRIBUTE_LIST
            return attributes, AttributeFault(_WITHDRAW, 0, rule, subcode, data[position:])
        kind = data[position + 1]
        length = int.from_bytes(data[position + 2 : position + header], "big")
        after = position + header + length
        if after > end:
            rule = f"the value overruns the attributes by {after - end} octets"
            subcode = UpdateSubcode.ATTRIBUTE_LENGTH
            return attributes, AttributeFault(_WITHDRAW, kind, rule, subcode, data[position:])
        value = data[position + header : after]
        attributes.append(RawAttribute(data[position], kind, value, data[position:after]))
        position = after
    return attributes, None


class _AttributeDecoder:
    """Decodes the attributes of one UPDATE in turn and collects values and faults."""

    def __init__(self, session: Negotiated) -> None:
        self.session = session
        self.fields: dict[str, Any] = {}
        self.present: set[int] = set()
        self.seen: set[int] = set()
        self.duplicated: set[int] = set()
        self.faults: list[AttributeFault] = []
        self.unknown: list[UnknownAttribute] = []
        self.partial: list[int] = []
        self.as4_path: AsPath | None = None
        self.as4_aggregator: Aggregator | None = None

    def fault(self, outcome: ErrorHandling, raw: RawAttribute, rule: str, subcode: int) -> None:
        self.faults.append(AttributeFault(outcome, raw.type, rule, subcode, raw.octets))

    def add(self, raw: RawAttribute) -> None:
        """Decode one attribute."""
        if raw.type in self.seen:
            # RFC 7606 section 3, item g: the first one is used. One fault, however many duplicates.
            if raw.type not in self.duplicated:
                self.duplicated.add(raw.type)
                subcode = UpdateSubcode.MALFORMED_ATTRIBUTE_LIST
                self.fault(_DISCARD, raw, "it appears twice", subcode)
            return
        self.seen.add(raw.type)
        rule = ATTRIBUTE_RULES.get(raw.type)
        if rule is None:
            self._add_unknown(raw)
            return
        if not self._may_send(raw, rule):
            return
        if raw.flags & _BOTH != rule.flags:
            rule_text = (
                f"flags {raw.flags:#04x}, Optional and Transitive have to be {rule.flags:#x}"
            )
            self.fault(rule.wrong_flags, raw, rule_text, UpdateSubcode.ATTRIBUTE_FLAGS)
            return
        try:
            value = rule.read(raw.value, self.session)
        except MalformedValue as error:
            self.fault(rule.malformed, raw, str(error), error.subcode)
            return
        self.present.add(raw.type)
        if rule.field is not None:
            self.fields[rule.field] = value
            if raw.flags & _PARTIAL and rule.flags == _BOTH:
                self.partial.append(raw.type)
        elif raw.type == AttributeType.AS4_PATH:
            self.as4_path = value
        elif raw.type == AttributeType.AS4_AGGREGATOR:
            self.as4_aggregator = value
        else:
            self._keep(raw)

    def _may_send(self, raw: RawAttribute, rule: AttributeRule) -> bool:
        """Return whether the peer may send the attribute; add a fault where it may not."""
        session = self.session
        if rule.internal and session.ebgp and not session.confederation:
            self.fault(_DISCARD, raw, "not for an external peer to send", 0)
            return False
        if session.as4 and raw.type in (AttributeType.AS4_PATH, AttributeType.AS4_AGGREGATOR):
            # RFC 6793 section 4.1
            self.fault(_DISCARD, raw, "not between four-octet AS speakers", 0)
            return False
        return True

    def _add_unknown(self, raw: RawAttribute) -> None:
        if not raw.flags & OPTIONAL:
            raise update_error(
                UpdateSubcode.UNRECOGNIZED_WELL_KNOWN_ATTRIBUTE,
                raw.octets,
                f"attribute {raw.type} is not optional and not known",
            )
        self._keep(raw)

    def _keep(self, raw: RawAttribute) -> None:
        """Keep a transitive attribute as octets, to be passed on; drop any other."""
        if raw.flags & TRANSITIVE:
            flags = _BOTH | (raw.flags & _PARTIAL)
            self.unknown.append(UnknownAttribute(flags, raw.type, raw.value))

    def finish(self) -> DecodedAttributes:
        """Return the result after the last attribute."""
        self._merge_as4()
        self.fields["unknown"] = tuple(sorted(self.unknown, key=lambda u: u.type))
        self.fields["partial"] = tuple(sorted(self.partial))
        attributes = PathAttributes(**self.fields)
        return DecodedAttributes(attributes, frozenset(self.present), tuple(self.faults))

    def _merge_as4(self) -> None:
        """Restore four-octet AS numbers from the AS4 attributes (RFC 6793 section 4.2.3)."""
        aggregator = self.fields.get("aggregator")
        if aggregator is not None and self.as4_aggregator is not None:
            if aggregator.asn != AS_TRANS:
                return
            self.fields["aggregator"] = self.as4_aggregator
        if self.as4_path is not None and "as_path" in self.fields:
            self.fields["as_path"] = merge_as4(self.fields["as_path"], self.as4_path)


def decode_attributes(raws: list[RawAttribute], session: Negotiated) -> DecodedAttributes:
    """Decode framed attributes other than MP_REACH_NLRI and MP_UNREACH_NLRI.

    Raises `NotificationError` for an unrecognized well-known attribute (RFC 4271 section 6.3).
    """
    decoder = _AttributeDecoder(session)
    for raw in raws:
        decoder.add(raw)
    return decoder.finish()
