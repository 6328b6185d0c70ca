"""Fast path for received UPDATEs: runs of plain IPv4 announcements, and of plain IPv4 withdrawals.

The slow path is `speaker.rib.inbound.InboundUpdates.process`, which leaves the same routes
(tests/speaker/rib/test_inbound.py). An announcement takes the fast path if `AttributeFastPath`
matches its attributes, the next hop is usable and no prefix is withdrawn beside it. A withdrawal
takes it if it has no path attributes. The first UPDATE of another kind ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, final

from speaker.attribute import (
    AttributeFastPath,
    PathAttributes,
    decode_attributes,
    frame_attributes,
)
from speaker.errors import Truncated
from speaker.message import UpdateDecoder
from speaker.negotiated import Negotiated
from speaker.nlri import IPV4_UNICAST, decode_prefixes
from speaker.rib.adj_in import AdjRibIn
from speaker.rib.inbound_context import InboundContext
from speaker.rib.path import Path
from speaker.rib.path_cache import PathCache
from speaker.rib.received_next_hops import ReceivedNextHops
from speaker.rib.usable_next_hop import unusable_reason

_MAX_NEXT_HOPS: Final = 256
"""The number of usable next hops that are cached; then the cache is cleared."""
_EMPTY_BODY_OCTETS: Final = 4
"""The two length fields: the body of an UPDATE without any content."""
_IPV4: Final = int(IPV4_UNICAST.afi)


@final
class InboundFastPath:
    """The fast path of one session."""

    __slots__ = (
        "_adj_in",
        "_attributes",
        "_cache",
        "_decode",
        "_decoder",
        "_next_hops",
        "_own_addresses",
        "_peer_is_local",
        "_usable_next_hops",
    )

    def __init__(
        self,
        context: InboundContext,
        adj_in: AdjRibIn,
        decoder: UpdateDecoder,
        cache: PathCache,
        next_hops: ReceivedNextHops,
    ) -> None:
        """Prepare for a session; ``decoder`` accounts for the memory of the attributes."""
        self._next_hops = next_hops
        negotiated = context.session
        self._adj_in = adj_in
        self._decoder = decoder
        self._own_addresses = context.connection.own_addresses
        self._peer_is_local = context.connection.peer_is_local
        self._attributes: AttributeFastPath | None = None
        if (
            IPV4_UNICAST in adj_in.families
            and IPV4_UNICAST not in negotiated.add_path_receive
            and negotiated.local_role is None
        ):
            self._attributes = AttributeFastPath.of(negotiated, context.settings.own_asns)
        self._decode: Callable[[bytes], PathAttributes] = partial(_decode, negotiated)
        self._usable_next_hops: set[bytes] = set()
        self._cache = cache

    def process_run(self, bodies: Sequence[bytes], start: int, end: int) -> int:
        """Process the leading run of UPDATEs that take the fast path; return its length.

        ``bodies`` are UPDATEs without header, of which ``start`` to before ``end`` are
        considered. The others are for the slow path.
        """
        attributes = self._attributes
        if attributes is None:
            return 0
        if bodies[start][0] or bodies[start][1]:
            return self._withdraw_run(bodies[start:end])
        match = attributes.match_next_hop
        known = self._cache.by_field
        usable = self._usable_next_hops
        source, decode = self._adj_in.source, self._decode
        paths: list[Path] = []
        fields: list[bytes] = []
        sets = octets = 0
        for body in bodies[start:end]:
            if body[0] or body[1]:
                # The length of the withdrawn routes is not 0.
                break
            nlri_at = 4 + (body[2] << 8 | body[3])
            if nlri_at >= len(body):
                # No NLRI, or lengths beyond the end.
                break
            nlri = body[nlri_at:]
            field = body[4:nlri_at]
            path = known.get(field)
            if path is None:
                hop = match(field)
                if hop is None or (hop not in usable and not self._is_usable(hop)):
                    break
                path = known[field] = Path(None, source, None, 0, field, decode)
                sets += 1
                octets += len(field)
            paths.append(path)
            fields.append(nlri)
        if sets:
            # This may clear all cached paths, these included.
            self._decoder.reserve(octets, sets)
        if not fields:
            return 0
        return self._adj_in.announce_fields(IPV4_UNICAST, paths, fields)

    def _withdraw_run(self, bodies: Sequence[bytes]) -> int:
        """Process the leading run of UPDATEs that only withdraw IPv4 prefixes; return its length."""
        taken = 0
        for body in bodies:
            if len(body) <= _EMPTY_BODY_OCTETS:
                break
            withdrawn = body[2:-2]
            if (body[0] << 8 | body[1]) != len(withdrawn) or body[-1] or body[-2] or not withdrawn:
                break
            try:
                nlri = decode_prefixes(withdrawn, _IPV4)
            except Truncated:
                break
            self._adj_in.withdraw(IPV4_UNICAST, nlri)
            taken += 1
        return taken

    def _is_usable(self, hop: bytes) -> bool:
        """Return whether a next hop is usable, and cache it if it is."""
        if unusable_reason(hop, self._own_addresses, loopback=self._peer_is_local) is not None:
            return False
        if len(self._usable_next_hops) >= _MAX_NEXT_HOPS:
            self._usable_next_hops.clear()
        self._usable_next_hops.add(hop)
        self._next_hops.add(hop)
        return True


def _decode(session: Negotiated, field: bytes) -> PathAttributes:
    """Decode a path attributes field that is known to be well-formed."""
    raws, _ = frame_attributes(field)
    return decode_attributes(raws, session).attributes
