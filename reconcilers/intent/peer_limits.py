"""The limit of the prefixes that each peer is sent, and the problems of prefixes that wait.

A limit is configured, or the peer has made it known by ending a session. A peer with a limit gets a
limited route set in place of its own (`reconcilers.intent.limited_sets`); peers with the same set and
the same limits share it, and peers without a limit share the unlimited one as before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconcilers.intent.limited_sets import LimitedSets, Limits, SetToLimit, Use, limited_name
from reconcilers.intent.options import IntentOptions
from reconcilers.intent_tables import IntentTables
from reconcilers.model import AdvertiseLimit, LearnedLimit, ObjectRef, Peer, Problem
from reconcilers.sliced_work import Pieces, Slices
from resources.enumeration import counted, enumerate_some
from resources.row_updates import replace_all
from speaker.nlri import Family, prefix_to_text
from statedb import WriteTxn

WARNING_PERCENT: Final = 75
"""Of a limit, from which on there is a warning."""
NAMED_PEERS: Final = 3
"""Peers that the problem of a Service has."""


class _Limited(NamedTuple):
    """A peer with limits, and the limits that the peer has announced."""

    peer: Peer
    limits: Limits
    learned: frozenset[Family]


class PeerLimits:
    """The peers with limits, as of the last compilation."""

    def __init__(
        self, intent: IntentTables, options: IntentOptions, node: str, pieces: Pieces
    ) -> None:
        """``pieces`` counts the prefixes of a slice."""
        self._node = node
        self._intent = intent
        self._options = options
        self._sets = LimitedSets(intent, pieces)
        self._limited: list[_Limited] = []
        self.problems: list[Problem] = []
        """Of the limits because of which addresses of Services wait."""
        self._problems_changed = False

    @property
    def limited(self) -> bool:
        """True if a peer has a limit of prefixes."""
        return bool(self._limited)

    def note(self, route_set: str, family: Family, nlri: bytes) -> None:
        """Note a changed route of a set, which a peer's limit may concern."""
        self._sets.note(route_set, family, nlri)

    def take_problems(self) -> bool:
        """True if the problems of peers' limits have changed since the last call."""
        changed, self._problems_changed = self._problems_changed, False
        return changed

    def replace_sets(self, txn: WriteTxn) -> Slices[None]:
        """Create the limited route sets that the peers get, and delete the others."""
        wanted = {
            limited.peer.route_set: SetToLimit(limited.peer.unlimited_set, limited.limits)
            for limited in self._limited
            if limited.peer.route_set is not None and limited.peer.unlimited_set is not None
        }
        yield from self._sets.replace(txn, wanted)

    def write(self, txn: WriteTxn) -> Slices[int]:
        """Write the limited routes of peers that differ, and the use of each peer's limits.

        Returns the number of routes.
        """
        if not self._sets.changed:
            return 0
        written = yield from self._sets.write(txn)
        rows = self._rows()
        replace_all(txn, self._intent.advertise_limits, rows)
        problems = self._problems(rows)
        self._problems_changed |= problems != self.problems
        self.problems = problems
        return written

    def apply(self, peers: Iterable[Peer], learned: Iterable[LearnedLimit]) -> list[Peer]:
        """Return the peers with their limits: a limited peer has a limited route set."""
        known: dict[tuple[str, str], list[LearnedLimit]] = {}
        for row in learned:
            known.setdefault((row.instance, row.peer), []).append(row)
        self._limited = []
        return [self._apply(peer, known.get((peer.instance, peer.name), ())) for peer in peers]

    def _apply(self, peer: Peer, rows: Iterable[LearnedLimit]) -> Peer:
        if peer.route_set is None:
            return peer
        configured = configured_limit(self._options, peer)
        learned = {
            row.family: row.limit
            for row in rows
            if row.configured == configured and row.end in ("", peer.end)
        }
        limits: list[tuple[Family, int]] = []
        from_peer = set()
        for family in sorted(peer.families):
            limit = configured or None
            if family in learned and (limit is None or learned[family] < limit):
                limit = learned[family]
                from_peer.add(family)
            if limit is not None:
                limits.append((family, limit))
        if not limits:
            return peer
        name = limited_name(peer.route_set, tuple(limits))
        limited = replace(peer, route_set=name, unlimited_set=peer.route_set)
        self._limited.append(_Limited(limited, tuple(limits), frozenset(from_peer)))
        return limited

    def _rows(self) -> list[AdvertiseLimit]:
        """Return each limit with its use."""
        written = []
        for peer, limits, learned in self._limited:
            for family, limit in limits:
                use = self._sets.use(peer.route_set or "", family)
                written.append(
                    AdvertiseLimit(
                        peer.instance,
                        peer.name,
                        family,
                        limit,
                        family in learned,
                        use.prefixes,
                        use.waiting,
                    )
                )
        return written

    def _problems(self, rows: Iterable[AdvertiseLimit]) -> list[Problem]:
        peers = {
            (limited.peer.instance, limited.peer.name): limited.peer for limited in self._limited
        }
        problems = []
        waiting: dict[tuple[ObjectRef, bytes, AdvertiseLimit], list[str]] = {}
        for row in rows:
            if row.waiting or row.prefixes > row.limit:
                peer = peers[row.instance, row.peer]
                use = self._sets.use(peer.route_set or "", row.family)
                problems.append(_problem(peer, row, use))
                for nlri, service in use.services:
                    # Peers with one set and one limit have one problem of the Service.
                    key = service, nlri, replace(row, instance="", peer="", learned=False)
                    waiting.setdefault(key, []).append(row.peer)
        return [
            *problems,
            *(self._problem_of(*key, names) for key, names in waiting.items()),
        ]

    def _problem_of(
        self, service: ObjectRef, nlri: bytes, row: AdvertiseLimit, peers: list[str]
    ) -> Problem:
        """Return the problem of a Service that waits; users of its namespace see it as an Event."""
        text = f"{prefix_to_text(row.family, nlri)} waits on node {self._node}"
        shown = enumerate_some([repr(name) for name in peers], NAMED_PEERS)
        who = f"peer {shown} is" if len(peers) == 1 else f"peers {shown} are"
        text += (
            f": {who} sent no more than {counted(row.limit, 'prefix', 'prefixes')} of {row.family}"
        )
        text += ", and older Services come first"
        return Problem((service,), "", text, category="conflict", of_tenant=True)


def configured_limit(options: IntentOptions, peer: Peer) -> int:
    """Return the limit of prefixes that is configured for a peer; 0 is none."""
    return options.peer_limit(peer.name, peer.address, peer.interface)


def _problem(peer: Peer, row: AdvertiseLimit, use: Use) -> Problem:
    most = counted(row.limit, "prefix", "prefixes")
    text = f"peer {peer.name!r} is sent no more than {most} of {row.family}"
    text += f" ({row.reason})"
    objects: tuple[ObjectRef, ...] = peer.origins[:1]
    if use.services:
        nlri, service = use.services[0]
        prefix = prefix_to_text(row.family, nlri)
        text += f": {prefix} of {service}, and the addresses of newer Services, wait"
    own = row.prefixes - use.of_services
    if own > row.limit:
        text += f"; {own} prefixes that are not of Services are sent beyond the limit"
    return Problem(
        objects, "", text, category="conflict", dialect=peer.dialect, count=row.waiting or 1
    )
