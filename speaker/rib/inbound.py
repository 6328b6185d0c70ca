"""UPDATEs of one session into its Adj-RIB-In: decoded, judged once per attribute set, filed.

RFC 7606: what is malformed costs the routes that it names, and the session only where the RFC says
so. It must never look at a prefix on its own: work is per message and per attribute set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from speaker.attribute import (
    AS_CONFED_SET,
    AS_SET,
    AttributeFastPath,
    ErrorHandling,
    PathAttributes,
    decode_attributes,
    frame_attributes,
)
from speaker.errors import Truncated
from speaker.message import RefreshKind, RouteRefresh, Update, UpdateDecoder
from speaker.negotiated import Negotiated
from speaker.nlri import IPV4_UNICAST, Family, PathNlri, decode_prefixes, encode_add_path
from speaker.rib.adj_in import MAX_PATHS, AdjRibIn
from speaker.rib.path import Path, Source
from speaker.rib.route_leaks import check_route_leak
from speaker.rib.usable_next_hop import is_loopback, unusable_reason

_PATHS = 65536
"""How many distinct attribute sets are remembered; then it starts anew."""
_HOPS: Final = 256
"""The same of next hops."""
_EMPTY: Final = 4
"""Octets of an UPDATE's body that says nothing."""
_IPV4: Final = int(IPV4_UNICAST.afi)


OWN_AS: Final = "own AS in the AS path"
OWN_ORIGINATOR: Final = "own router ID as originator"
LOOPS: Final = frozenset({OWN_AS, OWN_ORIGINATOR})
"""The reasons that are counted; others have a peer's numbers in them, and are without end."""


class MalformedReport(NamedTuple):
    """An UPDATE that was survived (RFC 7606), for people."""

    subcode: int
    text: str
    data: bytes = b""


class InboundUpdates:
    """Reads one session's UPDATEs."""

    __slots__ = (
        "_adj_in",
        "_attribute_fast_path",
        "_decoder",
        "_good_hops",
        "_negotiated",
        "_own_addresses",
        "_own_asns",
        "_peer_is_here",
        "_read",
        "_usual",
        "add_path_paths",
        "end_of_rib",
        "faults",
        "last_end_of_rib",
        "loops",
        "path_limit_exceeded",
        "paths",
        "prefixes_treated_as_withdraw",
        "treated_as_withdraw",
        "unnegotiated",
    )

    def __init__(
        self,
        negotiated: Negotiated,
        adj_in: AdjRibIn,
        own_asns: frozenset[int],
        own_addresses: frozenset[bytes],
        before: InboundUpdates | None = None,
    ) -> None:
        """Begin a session; ``before`` is the intake of the session whose routes are still held."""
        self._negotiated = negotiated
        self._adj_in = adj_in
        self._own_asns = own_asns
        self._own_addresses = own_addresses
        self._peer_is_here = is_loopback(adj_in.source.address)
        self._decoder = UpdateDecoder(negotiated, self._forget)
        # The same attributes from the same source are the same path: what is said again after a
        # restart is then no change for anybody.
        self.paths: dict[PathAttributes, Path] = {}
        """The path of each attribute set that was met."""
        self.add_path_paths: dict[tuple[PathAttributes, int], Path] = {}
        """The same where a prefix has path identifiers."""
        self._usual: dict[bytes, Path] = {}
        """The path of each path attribute field that is usual: those are in here alone."""
        if before is not None and before.eligibility_inputs == self.eligibility_inputs:
            self.paths = before.paths
            self.add_path_paths = before.add_path_paths
            self._usual = before._usual  # noqa: SLF001  its own kind
        self._good_hops: set[bytes] = set()
        """Next hops that may be used."""
        self._attribute_fast_path: AttributeFastPath | None = None
        if (
            IPV4_UNICAST in adj_in.families
            and IPV4_UNICAST not in negotiated.add_path_receive
            and negotiated.local_role is None
        ):
            self._attribute_fast_path = AttributeFastPath.of(negotiated, own_asns)
        self._read = partial(_read, negotiated)
        self.end_of_rib: set[Family] = set()
        """Families whose End-of-RIB has come."""
        self.last_end_of_rib: Family | None = None
        """The one whose End-of-RIB was the last UPDATE, for who takes care of it."""
        self.faults = 0
        self.path_limit_exceeded = False
        """Whether the last UPDATE named more paths of a prefix than are taken."""
        self.unnegotiated = 0
        """UPDATEs with prefixes of families that were not negotiated."""
        self.loops: Counter[str] = Counter()
        """UPDATEs whose routes have gone round in a circle, by how that was seen."""
        self.treated_as_withdraw = 0
        """UPDATEs whose announcements were malformed (RFC 7606) ..."""
        self.prefixes_treated_as_withdraw = 0
        """... and the prefixes that were withdrawn for it."""

    @property
    def eligibility_inputs(self) -> tuple[object, ...]:
        """What decides whether attributes are rejected."""
        return (
            self._negotiated.local_router_id,
            self._negotiated.local_role,
            self._own_asns,
            self._own_addresses,
        )

    def process(self, body: bytes) -> Update:
        """Take in an UPDATE's body; what is wrong with it is for `rejected`.

        Raises `NotificationError` where the session has to be reset.
        """
        self.path_limit_exceeded = False
        update = self._decoder.decode(body)
        adj_in = self._adj_in
        tables = adj_in.families
        # Withdrawn first: a prefix in both fields counts as announced (RFC 4271 section 4.3).
        for family, nlri, identified in update.withdrawn:
            if family in tables:
                adj_in.withdraw(family, encode_add_path(identified) if identified else nlri)
        if update.outcome >= ErrorHandling.TREAT_AS_WITHDRAW:
            self.treated_as_withdraw += 1
            for family, _, nlri, identified in update.announced:
                self.prefixes_treated_as_withdraw += len(nlri) + len(identified)
                if family in tables:
                    adj_in.withdraw(family, encode_add_path(identified) if identified else nlri)
        else:
            paths = self.paths
            for family, attributes, nlri, identified in update.announced:
                if identified:
                    self._announce_add_path(family, attributes, identified)
                    continue
                path = paths.get(attributes)
                if path is None:
                    path = self._new_path(attributes)
                if path.rejected in LOOPS:
                    self.loops[path.rejected] += 1
                adj_in.announce(family, path, nlri)
        if update.end_of_rib is not None:
            self.end_of_rib.add(update.end_of_rib)
            self.last_end_of_rib = update.end_of_rib
        if update.ignored:
            self.unnegotiated += 1
        return update

    def process_run(self, bodies: Sequence[bytes], start: int, end: int) -> int:
        """Take in UPDATEs of which there is nothing to be said, and return how many those are.

        In a row, from ``start`` on and before ``end``. Those are UPDATEs of IPv4 prefixes that are
        announced with usual attributes, and may be used, or that are withdrawn.
        """
        fast_path = self._attribute_fast_path
        if fast_path is None:
            return 0
        if bodies[start][0] or bodies[start][1]:
            return self._take_withdrawals(bodies[start:end])
        look = fast_path.match_next_hop
        known = self._usual
        good = self._good_hops
        source, read = self._adj_in.source, self._read
        paths: list[Path] = []
        fields: list[bytes] = []
        sets = octets = 0
        for body in bodies[start:end]:
            if body[0] or body[1]:
                # It withdraws something.
                break
            nlri_at = 4 + (body[2] << 8 | body[3])
            if nlri_at >= len(body):
                # It announces nothing, or its lengths cannot be.
                break
            nlri = body[nlri_at:]
            field = body[4:nlri_at]
            path = known.get(field)
            if path is None:
                hop = look(field)
                if hop is None or (hop not in good and not self._is_good(hop)):
                    break
                path = known[field] = Path(None, source, None, 0, field, read)
                sets += 1
                octets += len(field)
            paths.append(path)
            fields.append(nlri)
        if sets:
            # Perhaps it forgets all that there is, these among them.
            self._decoder.reserve(octets, sets)
        if not fields:
            return 0
        self.path_limit_exceeded = False
        return self._adj_in.announce_fields(IPV4_UNICAST, paths, fields)

    def _take_withdrawals(self, bodies: Sequence[bytes]) -> int:
        """Take in the first UPDATEs that withdraw IPv4 prefixes and do nothing else; how many."""
        taken = 0
        for body in bodies:
            if len(body) <= _EMPTY:
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
        if taken:
            self.path_limit_exceeded = False
        return taken

    def _is_good(self, hop: bytes) -> bool:
        """Tell whether a next hop may be used, and remember it then."""
        if unusable_reason(hop, self._own_addresses, loopback=self._peer_is_here) is not None:
            return False
        if len(self._good_hops) >= _HOPS:
            self._good_hops.clear()
        self._good_hops.add(hop)
        return True

    def _forget(self) -> None:
        """Let go of all attribute sets, as the decoder does: they would be held for nothing."""
        self.paths.clear()
        self._usual.clear()
        if self.add_path_paths:
            self.add_path_paths.clear()
            self._adj_in.forget_unused_sources()

    def _new_path(self, attributes: PathAttributes) -> Path:
        if len(self.paths) >= _PATHS:
            self.paths.clear()
        path = self._make_path(attributes, self._adj_in.source)
        self.paths[attributes] = path
        return path

    def _make_path(self, attributes: PathAttributes, source: Source) -> Path:
        rejected = self._judge(attributes)
        role = self._negotiated.local_role
        if role is not None:
            leak, attributes = check_route_leak(role, self._negotiated.peer_asn, attributes)
            rejected = rejected or leak
        return Path(attributes, source, rejected)

    def _announce_add_path(
        self, family: Family, attributes: PathAttributes, identified: list[PathNlri]
    ) -> None:
        """File prefixes that have path identifiers (RFC 7911)."""
        adj_in = self._adj_in
        by_id: dict[int, list[PathNlri]] = {}
        admitted = adj_in.admit(family, identified)
        self.path_limit_exceeded = self.path_limit_exceeded or len(admitted) < len(set(identified))
        for item in admitted:
            by_id.setdefault(item[0], []).append(item)
        for path_id, items in by_id.items():
            path = self.add_path_paths.get((attributes, path_id))
            if path is None:
                if len(self.add_path_paths) >= _PATHS:
                    self.add_path_paths.clear()
                    adj_in.forget_unused_sources()
                source = adj_in.source_of(path_id)
                path = self._make_path(attributes, source)
                self.add_path_paths[attributes, path_id] = path
            if path.rejected in LOOPS:
                self.loops[path.rejected] += 1
            adj_in.announce(family, path, encode_add_path(items))

    def _judge(self, attributes: PathAttributes) -> str | None:
        """Return why routes with these attributes may not be used (RFC 4271 section 9.1.2)."""
        for kind, asns in attributes.as_path:
            if not self._own_asns.isdisjoint(asns):
                return OWN_AS
            if kind in (AS_SET, AS_CONFED_SET):
                # As good as withdrawn, but people can see it.
                return "an AS_SET in the AS path (RFC 9774)"
        unusable = unusable_reason(
            attributes.next_hop, self._own_addresses, loopback=self._peer_is_here
        )
        if unusable is not None:
            return unusable
        originator = attributes.originator_id
        if originator and int.from_bytes(originator, "big") == self._negotiated.local_router_id:
            return OWN_ORIGINATOR
        return None

    def malformed_report(self, update: Update) -> MalformedReport | None:
        """Return what people should know of a malformed UPDATE, now and then."""
        self.faults += 1
        if self.faults & (self.faults - 1):
            # The first, the second, the fourth ...: a flood does not become a flood of reports.
            return None
        if not update.faults:
            return MalformedReport(
                0,
                f"UPDATE with more than {MAX_PATHS} paths of a prefix: those beyond were left out"
                f" (number {self.faults} of this session)",
            )
        fault = max(update.faults, key=lambda one: one.outcome)
        return MalformedReport(
            fault.subcode,
            f"UPDATE with a bad attribute {fault.attribute}: {fault.rule}"
            f" ({fault.outcome}, number {self.faults} of this session)",
            fault.data,
        )

    def decode_route_refresh(self, body: bytes) -> RouteRefresh | None:
        """Read a ROUTE-REFRESH; None where it is not for us: a family that is not spoken.

        Raises `NotificationError`.
        """
        message = RouteRefresh.decode(body)
        if message.subtype != RefreshKind.REQUEST and not self._negotiated.enhanced_route_refresh:
            return None
        return message if message.family in self._adj_in.families else None


def _read(session: Negotiated, field: bytes) -> PathAttributes:
    """Read a path attribute field that is known to have no mistake in it."""
    raws, _ = frame_attributes(field)
    return decode_attributes(raws, session).attributes
