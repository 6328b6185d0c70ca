"""UPDATE (RFC 4271 section 4.3, RFC 4760, RFC 7606): decoding.

Each distinct path attributes field is decoded once per session; its values are shared by all routes
that carry it. MP_REACH_NLRI and MP_UNREACH_NLRI contain prefixes, so the cache is keyed by the field
without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, final

from msgspec.structs import replace

from speaker.attribute import (
    AttributeFault,
    DecodedAttributes,
    ErrorHandling,
    PathAttributes,
    RawAttribute,
    decode_attributes,
    frame_attributes,
)
from speaker.errors import Truncated, update_error
from speaker.iana import IPV4_UNICAST, AttributeType, Family, UpdateSubcode
from speaker.message.multiprotocol import (
    MpReach,
    decode_mp_reach,
    decode_mp_unreach,
    flag_faults,
    next_hop_faults,
    session_reset,
)
from speaker.negotiated import Negotiated
from speaker.nlri import (
    PathNlri,
    decode_add_path,
    decode_prefixes,
    encode_add_path,
    has_prefixes,
)

CACHE_OCTETS: Final = 96 * 1024 * 1024
"""Memory of a session's cached attribute sets, estimated; when it is full, the cache is cleared."""
_SET_OCTETS: Final = 512
"""Estimated memory of an attribute set, whatever its size on the wire."""
_MEMORY_PER_WIRE_OCTET: Final = 8
"""Estimated memory of an attribute set for each octet on the wire, besides."""


class Reach(NamedTuple):
    """Prefixes of one family that are announced with the same attributes.

    With ADD-PATH ``nlri`` is empty, and ``paths`` has the prefixes with their path identifiers. The
    attributes include the next hop of this family.
    """

    family: Family
    attributes: PathAttributes
    nlri: list[bytes]
    paths: list[PathNlri]

    def wire(self) -> list[bytes]:
        """Return the prefixes in wire form, behind their path identifiers with ADD-PATH."""
        return encode_add_path(self.paths) if self.paths else self.nlri


class Unreach(NamedTuple):
    """Prefixes of one family that are withdrawn; ``nlri`` and ``paths`` as in `Reach`."""

    family: Family
    nlri: list[bytes]
    paths: list[PathNlri]

    def wire(self) -> list[bytes]:
        """Return the prefixes as `Reach.wire` does."""
        return encode_add_path(self.paths) if self.paths else self.nlri


class Update(NamedTuple):
    """A decoded UPDATE. With treat-as-withdraw the announced prefixes have to be withdrawn."""

    announced: tuple[Reach, ...]
    withdrawn: tuple[Unreach, ...]
    end_of_rib: Family | None
    """The family whose End-of-RIB marker this is (RFC 4724 section 2)."""
    faults: tuple[AttributeFault, ...]
    outcome: ErrorHandling
    """The strongest error handling of all faults."""
    ignored: tuple[Family, ...]
    """Families with NLRI that are not negotiated: these NLRI are ignored."""
    decoded: DecodedAttributes
    """All path attributes, also of an UPDATE without announced prefixes."""


@final
class UpdateDecoder:
    """Decodes the UPDATEs of one session and caches their attributes."""

    __slots__ = (
        "_cache_free",
        "_cache_limit",
        "_cache_size",
        "_decoded",
        "_on_evict",
        "_with_next_hop",
        "session",
    )

    def __init__(
        self,
        session: Negotiated,
        on_evict: Callable[[], None] | None = None,
        *,
        cache: Callable[[], int] = lambda: CACHE_OCTETS,
    ) -> None:
        """Start with an empty cache of so many octets; ``on_evict`` is called when it is cleared.

        ``cache`` is called again when it is full: it may grow then.
        """
        self.session = session
        self._on_evict = on_evict
        self._cache_limit = cache
        self._cache_size = self._cache_free = cache()
        self._decoded: dict[bytes, DecodedAttributes] = {}
        self._with_next_hop: dict[PathAttributes, PathAttributes] = {}
        """Attributes with the next hop of an MP_REACH_NLRI, each one shared."""

    def decode(self, body: bytes) -> Update:
        """Decode an UPDATE's body.

        Raises `NotificationError` for errors that reset the session (RFC 7606 section 3).
        """
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
        field = body[attributes_at:nlri_at]
        nlri = body[nlri_at:]
        decoded = self._decoded.get(field)
        if decoded is not None and IPV4_UNICAST in self.session.families:
            # A cached field has neither of the multiprotocol attributes.
            return self._assemble(withdrawn, field, nlri, decoded, None, None)
        return self._decode_field(withdrawn, field, nlri)

    def _decode_field(self, withdrawn: bytes, field: bytes, nlri: bytes) -> Update:
        """Decode an UPDATE whose path attributes field is not in the cache as it is."""
        attributes, overrun = frame_attributes(field)
        reach, unreach, others = _without_multiprotocol(attributes)
        plain = reach is None and unreach is None and overrun is None
        key = field if plain else b"".join(raw.octets for raw in others)
        decoded = self._decoded.get(key) if overrun is None else None
        if decoded is None:
            decoded = decode_attributes(others, self.session)
            if overrun is None:
                self.reserve(len(key))
                self._decoded[key] = decoded
        faults = flag_faults(reach, unreach)
        if overrun is not None:
            faults = (*faults, overrun)
        if faults:
            decoded = decoded._replace(faults=(*decoded.faults, *faults))
        return self._assemble(withdrawn, field, nlri, decoded, reach, unreach)

    def _assemble(
        self,
        withdrawn: bytes,
        field: bytes,
        nlri: bytes,
        decoded: DecodedAttributes,
        reach: RawAttribute | None,
        unreach: RawAttribute | None,
    ) -> Update:
        """Decode all NLRI and apply the error handling of RFC 7606.

        ``withdrawn``, ``field`` and ``nlri`` are the fields of RFC 4271 section 4.3; ``decoded`` is
        the path attributes field without ``reach`` and ``unreach``.
        """
        announced: list[Reach] = []
        gone: list[Unreach] = []
        ignored: list[Family] = []
        if withdrawn:
            paths, plain = self._decode_nlri(IPV4_UNICAST, withdrawn, None)
            if IPV4_UNICAST in self.session.families:
                gone.append(Unreach(IPV4_UNICAST, plain, paths))
        emptied = None if unreach is None else self._add_mp_unreach(unreach, gone, ignored)
        faults = decoded.faults
        reachable = bool(nlri)
        if reach is not None:
            mp = decode_mp_reach(reach, self.session)
            reachable = reachable or bool(mp.nlri)
            faults += self._add_mp_reach(mp, reach, decoded.attributes, announced, ignored)
        if nlri:
            paths, plain = self._decode_nlri(IPV4_UNICAST, nlri, None)
            if IPV4_UNICAST in self.session.families:
                announced.append(Reach(IPV4_UNICAST, decoded.attributes, plain, paths))
            else:
                ignored.append(IPV4_UNICAST)
        if reachable:
            faults += _missing_attributes(decoded, next_hop=bool(nlri))
        if faults and reach is not None and not nlri:
            faults = tuple(map(_without_next_hop, faults))
        outcome = ErrorHandling.NONE
        if faults:
            alone = unreach is not None and field == unreach.octets
            outcome = _error_handling(faults, withdrawable=reachable or alone)
        end_of_rib = None
        if not withdrawn and not nlri and reach is None:
            end_of_rib = _end_of_rib(field, decoded, faults, emptied)
        return Update(
            tuple(announced), tuple(gone), end_of_rib, faults, outcome, tuple(ignored), decoded
        )

    def _add_mp_unreach(
        self, raw: RawAttribute, gone: list[Unreach], ignored: list[Family]
    ) -> Family | None:
        """Add the prefixes of an MP_UNREACH_NLRI; return its family if it has none."""
        family, nlri = decode_mp_unreach(raw)
        if family not in self.session.families:
            ignored.append(family)
            return None
        if not nlri:
            return family
        if has_prefixes(family):
            paths, plain = self._decode_nlri(family, nlri, raw)
            gone.append(Unreach(family, plain, paths))
        return None

    def _add_mp_reach(
        self,
        mp: MpReach,
        raw: RawAttribute,
        attributes: PathAttributes,
        announced: list[Reach],
        ignored: list[Family],
    ) -> tuple[AttributeFault, ...]:
        """Add the prefixes of an MP_REACH_NLRI; return the faults of its next hop."""
        if mp.family not in self.session.families:
            ignored.append(mp.family)
            return ()
        if not has_prefixes(mp.family):
            return ()
        paths, plain = self._decode_nlri(mp.family, mp.nlri, raw)
        attributes = self._share_with_next_hop(attributes, mp.next_hop)
        announced.append(Reach(mp.family, attributes, plain, paths))
        return next_hop_faults(mp)

    def _decode_nlri(
        self, family: Family, data: bytes, raw: RawAttribute | None
    ) -> tuple[list[PathNlri], list[bytes]]:
        """Decode an NLRI field: paths with ADD-PATH, or plain prefixes; the other list is empty.

        ``raw`` is the multiprotocol attribute of the field; None for the fields of RFC 4271.
        """
        try:
            if family in self.session.add_path_receive:
                return decode_add_path(data, family.afi), []
            return [], decode_prefixes(data, family.afi)
        except Truncated as error:
            if raw is None:
                # RFC 4271 section 6.3
                subcode = UpdateSubcode.INVALID_NETWORK_FIELD
                raise session_reset(0, str(error), subcode) from None
            # RFC 4760 section 7
            subcode = UpdateSubcode.OPTIONAL_ATTRIBUTE
            raise session_reset(raw.type, str(error), subcode, raw.octets) from None

    def _share_with_next_hop(self, attributes: PathAttributes, next_hop: bytes) -> PathAttributes:
        changed = replace(attributes, next_hop=next_hop)
        known = self._with_next_hop.get(changed)
        if known is None:
            self.reserve(0)
            known = self._with_next_hop[changed] = changed
        return known

    def resize_cache(self) -> None:
        """Give the cache the size that it has now; a cache with more entries is cleared."""
        self._resize()
        self.reserve(0, 0)

    def _resize(self) -> None:
        octets = self._cache_limit()
        self._cache_free += octets - self._cache_size
        self._cache_size = octets

    @property
    def reserved(self) -> int:
        """The estimated memory of the cache, in octets."""
        return self._cache_size - self._cache_free

    def take_over(self, octets: int) -> None:
        """Count what the decoder of the last session has reserved: the paths of it are kept."""
        self._cache_free -= octets
        self.reserve(0, 0)

    def tables(self) -> list[dict[Any, Any]]:
        """Return the tables of the cache, for the caller to empty: no message is decoded any more."""
        return [self._decoded, self._with_next_hop]

    def reserve(self, octets: int, sets: int = 1) -> None:
        """Reserve memory for attribute sets of so many octets on the wire; clear a full cache first.

        The peer determines the number of sets, their sizes and their next hops: without a limit it
        could exhaust the memory.
        """
        cost = sets * _SET_OCTETS + _MEMORY_PER_WIRE_OCTET * octets
        self._cache_free -= cost
        if self._cache_free < 0:
            self._resize()
        if self._cache_free < 0:
            self._cache_free = self._cache_size - cost
            self._decoded.clear()
            self._with_next_hop.clear()
            if self._on_evict is not None:
                self._on_evict()


def _without_multiprotocol(
    attributes: list[RawAttribute],
) -> tuple[RawAttribute | None, RawAttribute | None, list[RawAttribute]]:
    """Return MP_REACH_NLRI, MP_UNREACH_NLRI and the other attributes.

    Raises `NotificationError` for a duplicate of the first two (RFC 7606 section 3, item g).
    """
    reach: RawAttribute | None = None
    unreach: RawAttribute | None = None
    others: list[RawAttribute] = []
    for raw in attributes:
        if raw.type == AttributeType.MP_REACH_NLRI:
            if reach is not None:
                raise session_reset(14, "it appears twice", UpdateSubcode.MALFORMED_ATTRIBUTE_LIST)
            reach = raw
        elif raw.type == AttributeType.MP_UNREACH_NLRI:
            if unreach is not None:
                raise session_reset(15, "it appears twice", UpdateSubcode.MALFORMED_ATTRIBUTE_LIST)
            unreach = raw
        else:
            others.append(raw)
    return reach, unreach, others


def _missing_attributes(
    decoded: DecodedAttributes, *, next_hop: bool
) -> tuple[AttributeFault, ...]:
    """Return a fault for each missing mandatory attribute (RFC 7606 section 3, item d)."""
    required = [AttributeType.ORIGIN, AttributeType.AS_PATH]
    if next_hop:
        required.append(AttributeType.NEXT_HOP)
    if decoded.present.issuperset(required):
        return ()
    # An attribute with a fault of its own is not missing, unless it was discarded.
    faulty = {
        fault.attribute
        for fault in decoded.faults
        if fault.outcome != ErrorHandling.ATTRIBUTE_DISCARD
    }
    return tuple(
        AttributeFault(
            ErrorHandling.TREAT_AS_WITHDRAW,
            kind,
            "it is missing",
            UpdateSubcode.MISSING_WELL_KNOWN_ATTRIBUTE,
            bytes((kind,)),
        )
        for kind in required
        if kind not in decoded.present and kind not in faulty
    )


def _without_next_hop(fault: AttributeFault) -> AttributeFault:
    """Return a fault of an UPDATE whose only announced prefixes are in MP_REACH_NLRI.

    It need not have NEXT_HOP, and an address there is ignored (RFC 4760 section 3).
    """
    if fault.subcode != UpdateSubcode.INVALID_NEXT_HOP:
        return fault
    return replace(fault, outcome=ErrorHandling.ATTRIBUTE_DISCARD)


def _error_handling(faults: tuple[AttributeFault, ...], *, withdrawable: bool) -> ErrorHandling:
    """Return the strongest error handling of at least one fault.

    ``withdrawable`` is whether the UPDATE has reachable NLRI, or MP_UNREACH_NLRI as its only
    attribute. Without either, treat-as-withdraw has nothing to withdraw: raises `NotificationError`
    (RFC 7606 section 5.2).
    """
    outcome = max([fault.outcome for fault in faults])
    if outcome >= ErrorHandling.TREAT_AS_WITHDRAW and not withdrawable:
        fault = max(faults, key=lambda fault: fault.outcome)
        subcode = UpdateSubcode(fault.subcode or 1)
        raise session_reset(fault.attribute, fault.rule, subcode, fault.data)
    return outcome


def _end_of_rib(
    field: bytes,
    decoded: DecodedAttributes,
    faults: tuple[AttributeFault, ...],
    emptied: Family | None,
) -> Family | None:
    """Return the family of an End-of-RIB marker (RFC 4724 section 2), or None.

    The UPDATE has neither withdrawn routes nor NLRI nor MP_REACH_NLRI; ``emptied`` is the family of
    an MP_UNREACH_NLRI without prefixes.
    """
    if not field:
        return IPV4_UNICAST
    if decoded.present or faults or decoded.attributes.unknown:
        return None
    return emptied
