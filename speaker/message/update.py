"""UPDATE (RFC 4271 section 4.3, RFC 4760 sections 3 and 4, RFC 7606): reading, the hot path.

Attributes are read once for each distinct run of octets and shared from then on; per prefix there is
one slice. MP_REACH_NLRI and MP_UNREACH_NLRI hold prefixes, so the run of octets that is looked up is
what is left without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

from msgspec.structs import replace

from speaker.attribute.decode import (
    DecodedAttributes,
    RawAttribute,
    decode_attributes,
    frame_attributes,
    is_not_unicast_ipv4,
)
from speaker.attribute.values import AttributeFault, ErrorHandling, PathAttributes
from speaker.errors import NotificationError, Truncated, update_error
from speaker.iana import IPV4_UNICAST, Afi, AttributeType, Family, UpdateSubcode
from speaker.negotiated import Negotiated
from speaker.nlri import PathNlri, decode_add_path, decode_prefixes, encode_add_path, has_prefixes

_CACHE: Final = 96 * 1024 * 1024
"""Octets that a session's remembered attribute sets may take, roughly; then it starts anew."""
_SET: Final = 512
"""Octets that an attribute set takes however short it is."""
_GROWTH: Final = 8
"""How much more an attribute set takes than on the wire."""
_IPV6_ANY: Final = bytes(16)
_LINK_LOCAL_ONLY: Final = _IPV6_ANY + b"\xfe\x80"


class Reach(NamedTuple):
    """Prefixes of one family that are announced with the same attributes.

    With ADD-PATH ``nlri`` is empty and ``paths`` has them with their identifiers. The attributes
    carry this family's next hop.
    """

    family: Family
    attributes: PathAttributes
    nlri: list[bytes]
    paths: list[PathNlri]

    def wire(self) -> list[bytes]:
        """Return the prefixes as on the wire, with their path identifiers where they have them."""
        return encode_add_path(self.paths) if self.paths else self.nlri


class Unreach(NamedTuple):
    """Prefixes of one family that are withdrawn; ``paths`` as in `Reach`."""

    family: Family
    nlri: list[bytes]
    paths: list[PathNlri]

    def wire(self) -> list[bytes]:
        """Return the prefixes as in `Reach.wire`."""
        return encode_add_path(self.paths) if self.paths else self.nlri


class Update(NamedTuple):
    """One UPDATE; where the outcome is treat-as-withdraw, what it announces has to be withdrawn."""

    announced: tuple[Reach, ...]
    withdrawn: tuple[Unreach, ...]
    end_of_rib: Family | None
    faults: tuple[AttributeFault, ...]
    outcome: ErrorHandling
    ignored: tuple[Family, ...]
    """Families that were not negotiated: their NLRI are left alone."""
    block: DecodedAttributes
    """All attributes, also where nothing is announced with them."""


class _Mp(NamedTuple):
    family: Family
    next_hop: bytes
    nlri: bytes


_NOTHING: Final = PathAttributes()


def _reset(attribute: int, rule: str, subcode: UpdateSubcode, data: bytes = b"") -> Exception:
    error = update_error(subcode, data, f"attribute {attribute}: {rule}" if attribute else rule)
    error.attribute = attribute  # type: ignore[attr-defined]  # read by `reset_attribute`
    return error


def reset_attribute(error: NotificationError) -> int | None:
    """Tell which attribute made an UPDATE end the session, where it was one."""
    found: int | None = getattr(error, "attribute", None)
    return found


@final
class UpdateDecoder:
    """Reads the UPDATEs of one session."""

    __slots__ = ("_blocks", "_cache", "_forgot", "_interned", "_room", "session")

    def __init__(
        self, session: Negotiated, forgot: Callable[[], None] | None = None, *, cache: int = _CACHE
    ) -> None:
        """Begin; ``forgot`` is told when attributes that were remembered are let go.

        ``cache`` is how many octets they may take.
        """
        self.session = session
        self._forgot = forgot
        self._cache = self._room = cache
        self._blocks: dict[bytes, DecodedAttributes] = {}
        self._interned: dict[PathAttributes, PathAttributes] = {}

    def decode(self, body: bytes) -> Update:
        """Read a body. Raises `NotificationError` for what RFC 7606 leaves a session reset."""
        if len(body) < 4:
            raise update_error(UpdateSubcode.MALFORMED_ATTRIBUTE_LIST, b"", f"{len(body)} octets")
        withdrawn_end = 2 + int.from_bytes(body[:2], "big")
        attributes_at = withdrawn_end + 2
        nlri_at = attributes_at + int.from_bytes(body[withdrawn_end:attributes_at], "big")
        if attributes_at > len(body) or nlri_at > len(body):
            raise update_error(
                UpdateSubcode.MALFORMED_ATTRIBUTE_LIST, b"", "lengths beyond the end of the message"
            )
        withdrawn = body[2:withdrawn_end]
        octets = body[attributes_at:nlri_at]
        nlri = body[nlri_at:]
        block = self._blocks.get(octets)
        if block is not None and IPV4_UNICAST in self.session.families:
            # The usual case: attributes seen before, without multiprotocol ones.
            return self._assemble(withdrawn, nlri, block, None, None, octets)
        return self._decode(withdrawn, octets, nlri)

    def _decode(self, withdrawn: bytes, octets: bytes, nlri: bytes) -> Update:
        raws, overrun = frame_attributes(octets)
        reach: RawAttribute | None = None
        unreach: RawAttribute | None = None
        others: list[RawAttribute] = []
        for raw in raws:
            if raw.type == AttributeType.MP_REACH_NLRI:
                if reach is not None:
                    raise _reset(14, "it is there twice", UpdateSubcode.MALFORMED_ATTRIBUTE_LIST)
                reach = raw
            elif raw.type == AttributeType.MP_UNREACH_NLRI:
                if unreach is not None:
                    raise _reset(15, "it is there twice", UpdateSubcode.MALFORMED_ATTRIBUTE_LIST)
                unreach = raw
            else:
                others.append(raw)
        plain = reach is None and unreach is None and overrun is None
        key = octets if plain else b"".join(raw.octets for raw in others)
        block = self._blocks.get(key) if overrun is None else None
        if block is None:
            block = decode_attributes(others, self.session)
            if overrun is None:
                self.spend(len(key))
                self._blocks[key] = block
        extra = tuple(
            AttributeFault(
                ErrorHandling.TREAT_AS_WITHDRAW,
                raw.type,
                f"flags {raw.flags:#04x}, an optional non-transitive attribute has 0x80",
                UpdateSubcode.ATTRIBUTE_FLAGS,
                raw.octets,
            )
            for raw in (reach, unreach)
            if raw is not None and raw.flags & 0xC0 != 0x80
        )
        if overrun is not None:
            extra = (*extra, overrun)
        if extra:
            block = block._replace(faults=(*block.faults, *extra))
        return self._assemble(withdrawn, nlri, block, reach, unreach, octets)

    def _assemble(
        self,
        withdrawn: bytes,
        nlri: bytes,
        block: DecodedAttributes,
        reach: RawAttribute | None,
        unreach: RawAttribute | None,
        octets: bytes,
    ) -> Update:
        announced: list[Reach] = []
        gone: list[Unreach] = []
        ignored: list[Family] = []
        faults = block.faults
        ipv4 = IPV4_UNICAST in self.session.families
        if withdrawn:
            paths, plain = self._split(IPV4_UNICAST, withdrawn, None)
            if ipv4:
                gone.append(Unreach(IPV4_UNICAST, plain, paths))
        mp_gone = self._unreach(unreach, gone, ignored)
        mp = self._reach(reach)
        if mp is not None:
            if mp.family not in self.session.families:
                ignored.append(mp.family)
            elif has_prefixes(mp.family):
                faults += self._mp_faults(mp)
                paths, plain = self._split(mp.family, mp.nlri, reach)
                attributes = self._with_next_hop(block.attributes, mp.next_hop)
                announced.append(Reach(mp.family, attributes, plain, paths))
        if nlri:
            paths, plain = self._split(IPV4_UNICAST, nlri, None)
            if ipv4:
                announced.append(Reach(IPV4_UNICAST, block.attributes, plain, paths))
            else:
                ignored.append(IPV4_UNICAST)
        reachable = bool(nlri) or (mp is not None and bool(mp.nlri))
        if reachable:
            faults += self._missing(block, classic=bool(nlri))
        outcome = max((fault.outcome for fault in faults), default=ErrorHandling.NONE)
        alone = unreach is not None and octets == unreach.octets
        if outcome >= ErrorHandling.TREAT_AS_WITHDRAW and not reachable and not alone:
            # RFC 7606 section 5.2: without reachable NLRI there is nothing to withdraw instead. An
            # MP_UNREACH_NLRI alone withdraws what there is.
            fault = max(faults, key=lambda f: f.outcome)
            raise _reset(fault.attribute, fault.rule, UpdateSubcode(fault.subcode or 1), fault.data)
        end_of_rib = None
        if not withdrawn and not nlri and reach is None and not block.present:
            if not octets:
                end_of_rib = IPV4_UNICAST
            elif mp_gone is not None and not faults and not block.attributes.unknown:
                end_of_rib = mp_gone
        return Update(
            tuple(announced), tuple(gone), end_of_rib, faults, outcome, tuple(ignored), block
        )

    def _unreach(
        self, raw: RawAttribute | None, gone: list[Unreach], ignored: list[Family]
    ) -> Family | None:
        """Add what MP_UNREACH_NLRI withdraws; its family when it withdraws nothing."""
        if raw is None:
            return None
        if len(raw.value) < 3:
            raise _reset(
                15, f"{len(raw.value)} octets", UpdateSubcode.OPTIONAL_ATTRIBUTE, raw.octets
            )
        family = Family(int.from_bytes(raw.value[:2], "big"), raw.value[2])
        nlri = raw.value[3:]
        if family not in self.session.families:
            ignored.append(family)
            return None
        if not nlri:
            return family
        if has_prefixes(family):
            paths, plain = self._split(family, nlri, raw)
            gone.append(Unreach(family, plain, paths))
        return None

    def _reach(self, raw: RawAttribute | None) -> _Mp | None:
        if raw is None:
            return None
        value = raw.value
        if len(value) < 5:
            raise _reset(14, f"{len(value)} octets", UpdateSubcode.OPTIONAL_ATTRIBUTE, raw.octets)
        family = Family(int.from_bytes(value[:2], "big"), value[2])
        size = value[3]
        if 4 + size + 1 > len(value):
            rule = f"a next hop of {size} octets"
            raise _reset(14, rule, UpdateSubcode.OPTIONAL_ATTRIBUTE, raw.octets)
        next_hop = value[4 : 4 + size]
        if family in self.session.families and has_prefixes(family):
            # RFC 2545 section 3, RFC 8950 section 3
            allowed: tuple[int, ...] = (16, 32)
            if family.afi == Afi.IPV4:
                allowed = (4, 16, 32) if family in self.session.extended_next_hop else (4,)
            if size not in allowed:
                rule = f"a next hop of {size} octets"
                raise _reset(14, rule, UpdateSubcode.OPTIONAL_ATTRIBUTE, raw.octets)
            if size == 32 and next_hop.startswith(_LINK_LOCAL_ONLY):
                # RFC 2545 does not say how to tell a next hop that has no global address: some
                # have the link-local one alone, BIRD leaves the global one unspecified.
                next_hop = next_hop[16:]
        return _Mp(family, next_hop, value[5 + size :])

    def _mp_faults(self, mp: _Mp) -> tuple[AttributeFault, ...]:
        bad = (
            is_not_unicast_ipv4(mp.next_hop)
            if len(mp.next_hop) == 4
            else mp.next_hop[:16] == _IPV6_ANY
        )
        if not bad:
            return ()
        return (
            AttributeFault(
                ErrorHandling.TREAT_AS_WITHDRAW,
                AttributeType.MP_REACH_NLRI,
                "the next hop is not a unicast address",
                UpdateSubcode.OPTIONAL_ATTRIBUTE,
            ),
        )

    def _missing(self, block: DecodedAttributes, *, classic: bool) -> tuple[AttributeFault, ...]:
        required = [AttributeType.ORIGIN, AttributeType.AS_PATH]
        if classic:
            required.append(AttributeType.NEXT_HOP)
        if block.present.issuperset(required):
            return ()
        told = {fault.attribute for fault in block.faults if fault.outcome != _DISCARD}
        return tuple(
            AttributeFault(
                ErrorHandling.TREAT_AS_WITHDRAW,
                kind,
                "it is missing",
                UpdateSubcode.MISSING_WELL_KNOWN_ATTRIBUTE,
                bytes((kind,)),
            )
            for kind in required
            if kind not in block.present and kind not in told
        )

    def _split(
        self, family: Family, data: bytes, raw: RawAttribute | None
    ) -> tuple[list[PathNlri], list[bytes]]:
        """Cut a field; ``raw`` is the multiprotocol attribute that it is part of."""
        try:
            if family in self.session.add_path_receive:
                return decode_add_path(data, family.afi), []
            return [], decode_prefixes(data, family.afi)
        except Truncated as error:
            if raw is None:
                raise _reset(0, str(error), UpdateSubcode.INVALID_NETWORK_FIELD) from None
            # RFC 4760 section 7
            subcode = UpdateSubcode.OPTIONAL_ATTRIBUTE
            raise _reset(raw.type, str(error), subcode, raw.octets) from None

    def _with_next_hop(self, attributes: PathAttributes, next_hop: bytes) -> PathAttributes:
        changed = replace(attributes, next_hop=next_hop)
        known = self._interned.get(changed)
        if known is None:
            self.spend(0)
            known = self._interned[changed] = changed
        return known

    def spend(self, octets: int, sets: int = 1) -> None:
        """Make room for attribute sets of so many octets, if need be by forgetting all there are.

        A peer decides how many there are, how long they are, and under how many next hops.
        """
        cost = sets * _SET + _GROWTH * octets
        self._room -= cost
        if self._room < 0:
            self._room = self._cache - cost
            self._blocks.clear()
            self._interned.clear()
            if self._forgot is not None:
                self._forgot()


_DISCARD: Final = ErrorHandling.ATTRIBUTE_DISCARD
