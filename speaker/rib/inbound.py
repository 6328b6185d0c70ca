"""Inbound processing of one session: UPDATEs into the Adj-RIB-In.

Each attribute set is decoded and checked once: AS loops and next hops (RFC 4271 section 9.1.2), route
leaks (RFC 9234). Its prefixes share one `Path`. A malformed UPDATE is treated as a withdrawal where
RFC 7606 permits, and resets the session elsewhere. Work is per message and per attribute set, never
per prefix. This is the slow path of `speaker.rib.inbound_fast_path`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, final

from speaker.attribute import (
    AS_CONFED_SET,
    AS_SET,
    ErrorHandling,
    PathAttributes,
    is_originated_in,
    is_wrong_first_as,
    occurrences,
)
from speaker.iana import attribute_name
from speaker.message import RefreshKind, RouteRefresh, Update, UpdateDecoder
from speaker.message.update import CACHE_OCTETS
from speaker.nlri import Family, PathNlri, encode_add_path
from speaker.rib.adj_in import AdjRibIn, StaleMark
from speaker.rib.adj_in.path_ids import MAX_PATHS
from speaker.rib.inbound_context import InboundContext
from speaker.rib.inbound_fast_path import InboundFastPath
from speaker.rib.path import Path, Source
from speaker.rib.path_cache import PathCache
from speaker.rib.received_next_hops import ReceivedNextHops
from speaker.rib.route_leaks import check_route_leak, may_have_otc_attached
from speaker.rib.usable_next_hop import unusable_reason

_SMALL_CACHE_OCTETS: Final = 2 * 1024 * 1024
"""Of decoded attributes, where no received route is used: about a thousand sets."""
_CACHE_OCTETS_OF_ROUTE: Final = 1024
"""More for each route that an import policy accepts: an attribute set, at most."""
STEP_KEYS: Final = 250
"""The number of routes that are judged again in one step."""
OWN_AS: Final = "own AS in the AS path"
OWN_ORIGINATOR: Final = "own router ID as originator"
LOOPS: Final = frozenset({OWN_AS, OWN_ORIGINATOR})
"""The reasons that are counted; texts of other reasons contain values that the peer chooses."""


class MalformedReport(NamedTuple):
    """A malformed UPDATE that did not reset the session (RFC 7606), for the log and the status."""

    subcode: int
    text: str
    data: bytes = b""


class JudgedRoutes(NamedTuple):
    """The result of one step of `InboundUpdates.judge_again`."""

    family: Family | None
    changed: Sequence[bytes]
    """The keys of routes that were withdrawn, or that have another path now."""
    looked_up: int


def _cache_octets(adj_in: AdjRibIn) -> int:
    """Return the memory for the attribute sets that a session caches."""
    if adj_in.keeps_all:
        return CACHE_OCTETS
    accepted = sum(map(adj_in.accepted, adj_in.families))
    return min(_SMALL_CACHE_OCTETS + _CACHE_OCTETS_OF_ROUTE * accepted, CACHE_OCTETS)


@final
class InboundUpdates:
    """The inbound processing of one session."""

    __slots__ = (
        "_adj_in",
        "_decoder",
        "cache",
        "context",
        "end_of_rib",
        "fast_path",
        "faults",
        "last_end_of_rib",
        "loops",
        "malformed",
        "next_hops",
        "path_limit_exceeded",
        "prefixes_treated_as_withdraw",
        "treated_as_withdraw",
    )

    def __init__(
        self,
        context: InboundContext,
        adj_in: AdjRibIn,
        before: InboundUpdates | None = None,
    ) -> None:
        """Start a session; ``before`` belongs to the session whose routes ``adj_in`` still holds.

        It judges by the context already (`judge_again`).
        """
        if before is not None:
            # Equal: kept paths refer to what the former session had negotiated, and would hold one
            # for each restart.
            context = before.context
        self.context: InboundContext = context
        """All that the judgement of a path depends on besides its attributes."""
        self._adj_in = adj_in
        self.cache = PathCache(adj_in)
        """The paths of the attribute sets that were received."""
        self.next_hops: ReceivedNextHops = (
            ReceivedNextHops() if before is None else before.next_hops
        )
        """Of the routes of this session, and of the kept routes of the former session."""
        if before is not None:
            # Equal attributes from the same source remain the same path: a table that is received
            # again after a restart changes nothing.
            self.cache = before.cache
        # Without a reference to this object, which would be a cycle.
        size = partial(_cache_octets, adj_in)
        self._decoder = UpdateDecoder(context.session, self.cache.clear, cache=size)
        if before is not None:
            self._decoder.take_over(before.reserved_octets)
        self.fast_path = InboundFastPath(context, adj_in, self._decoder, self.cache, self.next_hops)
        """Processes runs of plain UPDATEs; the caller passes the others to `process`."""
        self.end_of_rib: set[Family] = set()
        """Families whose End-of-RIB marker was received (RFC 4724 section 2)."""
        self.last_end_of_rib: Family | None = None
        """The family of an End-of-RIB marker that the caller has not handled yet."""
        self.faults = 0
        """UPDATEs with a fault."""
        self.malformed = ""
        """The faults of the last reported UPDATE, as text."""
        self.path_limit_exceeded = False
        """Whether the last processed UPDATE had more than `MAX_PATHS` paths of a prefix."""
        self.loops: Counter[str] = Counter()
        """UPDATEs whose routes are looped, by reason: `OWN_AS` or `OWN_ORIGINATOR`."""
        self.treated_as_withdraw = 0
        """UPDATEs that were treated as a withdrawal (RFC 7606)."""
        self.prefixes_treated_as_withdraw = 0
        """The announced prefixes of these UPDATEs."""

    @property
    def reserved_octets(self) -> int:
        """The estimated memory of the cached attribute sets and paths."""
        return self._decoder.reserved

    def resize_cache(self) -> None:
        """Adapt the cache of attributes to a changed number of routes that are kept."""
        self._decoder.resize_cache()

    def judge_again(self, context: InboundContext) -> Iterator[JudgedRoutes]:
        """Apply another context to the stale routes of a session that has ended, in steps.

        New paths are judged by it from here on. Routes that the peer could not announce in this context
        are withdrawn. A route that is announced meanwhile is left as it is.
        """
        before = self.context
        if context == before:
            return iter(())
        self.context = context
        self.cache.clear()
        adj_in = self._adj_in
        marks = {family: adj_in.mark_held(family) for family in adj_in.families}
        return self._judged_again(before, context, marks)

    def _judged_again(
        self,
        before: InboundContext,
        after: InboundContext,
        marks: Mapping[Family, StaleMark | None],
    ) -> Iterator[JudgedRoutes]:
        adj_in = self._adj_in
        judgements: dict[Path, Path | None] = {}
        for family, mark in marks.items():
            if mark is None:
                continue
            for keys in adj_in.stale_keys(family, mark, STEP_KEYS):
                changed: list[bytes] = []
                for path, nlri in adj_in.by_path(family, keys)[0].items():
                    if path in judgements:
                        judged = judgements[path]
                    else:
                        judged = judgements[path] = self._judge_again(path, before, after)
                        if judged is not None:
                            # A key may be in a list for a second time.
                            judgements[judged] = judged
                    if judged is path:
                        continue
                    if judged is None:
                        adj_in.withdraw(family, nlri)
                    else:
                        adj_in.replace_stale(family, judged, nlri)
                    changed += nlri
                yield JudgedRoutes(family, changed, len(keys))
            adj_in.forget_mark(family, mark)
            for number in mark.release():
                yield JudgedRoutes(family, (), number)
        while judgements:
            some = min(STEP_KEYS, len(judgements))
            for _ in range(some):
                judgements.popitem()
            yield JudgedRoutes(None, (), some)

    def _judge_again(
        self, path: Path, before: InboundContext, after: InboundContext
    ) -> Path | None:
        """Return a held path as another context judges it; None for a malformed one."""
        session, attributes = after.session, path.attributes
        if session.ebgp and not session.confederation:
            if is_wrong_first_as(attributes.as_path, session):
                return None
            former = before.session
            if former.local_role != session.local_role and may_have_otc_attached(
                former.local_role, former.peer_asn, attributes
            ):
                # Whether the attribute was received is not recorded.
                return None
        judged = self._make_path(attributes, path.source, after)
        same = judged.rejected == path.rejected and judged.attributes == attributes
        return path if same else judged

    def cached(self) -> list[dict[Any, Any]]:
        """Return the tables of cached attributes and paths, to be emptied after the last session."""
        return [*self.cache.tables(), *self._decoder.tables()]

    def process(self, body: bytes) -> Update:
        """Process the body of an UPDATE; `malformed_report` describes its faults.

        Raises `NotificationError` for errors that reset the session.
        """
        self.path_limit_exceeded = False
        update = self._decoder.decode(body)
        # Withdrawals first: a prefix in both fields is announced (RFC 4271 section 4.3).
        for family, nlri, identified in update.withdrawn:
            self._withdraw(family, nlri, identified)
        if update.outcome >= ErrorHandling.TREAT_AS_WITHDRAW:
            self.treated_as_withdraw += 1
            for family, _, nlri, identified in update.announced:
                self.prefixes_treated_as_withdraw += len(nlri) + len(identified)
                self._withdraw(family, nlri, identified)
        else:
            for family, attributes, nlri, identified in update.announced:
                if identified:
                    self._announce_add_path(family, attributes, identified)
                else:
                    self._announce(family, attributes, nlri)
        if update.end_of_rib is not None:
            self.end_of_rib.add(update.end_of_rib)
            self.last_end_of_rib = update.end_of_rib
        return update

    def _withdraw(self, family: Family, nlri: list[bytes], identified: list[PathNlri]) -> None:
        if family in self._adj_in.families:
            self._adj_in.withdraw(family, encode_add_path(identified) if identified else nlri)

    def _announce(self, family: Family, attributes: PathAttributes, nlri: Sequence[bytes]) -> None:
        path = self.cache.get(attributes)
        if path is None:
            path = self._make_path(attributes, self._adj_in.source, self.context)
            self.cache.add(attributes, path)
        if path.rejected in LOOPS:
            self.loops[path.rejected] += 1
        self._adj_in.announce(family, path, nlri)

    def _announce_add_path(
        self, family: Family, attributes: PathAttributes, identified: list[PathNlri]
    ) -> None:
        """Announce prefixes with path identifiers (RFC 7911): one path for each identifier."""
        adj_in = self._adj_in
        by_id: dict[int, list[PathNlri]] = {}
        admitted = adj_in.admit(family, identified)
        self.path_limit_exceeded = self.path_limit_exceeded or len(admitted) < len(set(identified))
        for item in admitted:
            by_id.setdefault(item[0], []).append(item)
        for path_id, items in by_id.items():
            path = self.cache.get_add_path(attributes, path_id)
            if path is None:
                self.cache.make_room_for_add_path()
                path = self._make_path(attributes, adj_in.source_of(path_id), self.context)
                self.cache.add_add_path(attributes, path_id, path)
            if path.rejected in LOOPS:
                self.loops[path.rejected] += 1
            adj_in.announce(family, path, encode_add_path(items))

    def _make_path(
        self, attributes: PathAttributes, source: Source, context: InboundContext
    ) -> Path:
        self.next_hops.add(attributes.next_hop)
        rejected = _ineligible_reason(attributes, context)
        session = context.session
        if session.local_role is not None:
            leak, attributes = check_route_leak(session.local_role, session.peer_asn, attributes)
            rejected = rejected or leak
        return Path(attributes, source, rejected)

    def malformed_report(self, update: Update) -> MalformedReport | None:
        """Count a malformed UPDATE and return its report; None for most of a flood.

        The first, second, fourth, eighth ... malformed UPDATE of a session is reported.
        """
        self.faults += 1
        if self.faults & (self.faults - 1):
            return None
        number = f"number {self.faults} of this session"
        if not update.faults:
            self.malformed = f"more than {MAX_PATHS} paths of a prefix: the others were dropped"
            return MalformedReport(0, f"UPDATE with {self.malformed} ({number})")
        fault = max(update.faults, key=lambda fault: fault.outcome)
        cause = f"{attribute_name(fault.attribute)}: {fault.rule}"
        self.malformed = f"{cause} ({fault.outcome})"
        return MalformedReport(
            fault.subcode, f"malformed UPDATE: {cause} ({fault.outcome}, {number})", fault.data
        )

    def decode_route_refresh(self, body: bytes) -> RouteRefresh | None:
        """Decode a ROUTE-REFRESH; None if its family or its subtype was not negotiated.

        Raises `NotificationError`.
        """
        message = RouteRefresh.decode(body)
        enhanced = self.context.session.enhanced_route_refresh
        if message.subtype != RefreshKind.REQUEST and not enhanced:
            return None
        return message if message.family in self._adj_in.families else None


def _ineligible_reason(attributes: PathAttributes, context: InboundContext) -> str | None:
    """Return why routes with these attributes are ineligible (RFC 4271 section 9.1.2), or None."""
    as_path = attributes.as_path
    settings = context.settings
    own_asns = settings.own_asns
    if settings.allowas_in_origin and is_originated_in(as_path, own_asns):
        own_asns = frozenset()
    elif settings.allowas_in:
        most = settings.allowas_in
        own_asns = frozenset(asn for asn in own_asns if occurrences(as_path, asn) > most)
    for kind, asns in as_path:
        if not own_asns.isdisjoint(asns):
            return OWN_AS
        if kind in (AS_SET, AS_CONFED_SET):
            # RFC 9774 treats it as withdrawn; here the route stays visible as ineligible.
            return "an AS_SET in the AS path (RFC 9774)"
    unusable = unusable_reason(
        attributes.next_hop,
        context.connection.own_addresses,
        loopback=context.connection.peer_is_local,
    )
    if unusable is not None:
        return unusable
    originator = attributes.originator_id
    if originator and int.from_bytes(originator, "big") == context.session.local_router_id:
        # RFC 4456 section 8
        return OWN_ORIGINATOR
    return None
