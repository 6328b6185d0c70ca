"""The limits that peers make known: the table that the compiler reads.

A router with a prefix limit ends the session beyond it, and again after each reconnection: that costs
all routes of the node. After Cease / Maximum Number of Prefixes Reached (RFC 4486) the peer is sent no
more prefixes than its NOTIFICATION names, or nine tenths of what it was sent, until its session
has been up for an hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reconcilers.intent.options import IntentOptions
from reconcilers.intent.peer_limits import configured_limit
from reconcilers.intent_tables import KEY, IntentTables
from reconcilers.model import LearnedLimit
from resources.row_updates import replace_some
from speaker.api import ESTABLISHED, PeerPrefixLimit, StateChanged
from speaker.nlri import Family
from statedb import Database

LIFTED_AFTER_SECONDS: Final = 3600.0
"""The time that a session has to be up."""
Key = tuple[str, str]
"""Instance and peer."""


class LearnedLimits:
    """Takes the ends and the beginnings of sessions, and writes the limits that follow from them."""

    def __init__(self, database: Database, intent: IntentTables, options: IntentOptions) -> None:
        self._database = database
        self._intent = intent
        self._options = options
        self._noted: dict[Key, dict[Family, int]] = {}
        """Limits that are not written yet."""
        self._up_since: dict[Key, float] = {}

    def note(self, event: StateChanged, now: float) -> bool:
        """Note a limit that a session has made known; True if one is to be written, or lifted.

        ``now`` is monotonic, in seconds.
        """
        key = (event.instance, event.peer)
        if event.new == ESTABLISHED:
            self._up_since[key] = now
            return any(True for _ in self._rows(key))
        if event.old == ESTABLISHED:
            self._up_since.pop(key, None)
            if event.peer_limit is not None:
                self._noted.setdefault(key, {}).update(limits_of(event.peer_limit))
                return True
        return False

    def restore(self, rows: Iterable[LearnedLimit]) -> None:
        """Write the learned limits of an earlier process, before peers are known."""
        table = self._intent.learned_limits
        with self._database.write(table) as txn:
            for row in rows:
                table.upsert(txn, row)

    def write(self, now: float) -> float | None:
        """Write the learned limits, and delete expired ones and limits of former peers.

        A peer with another address is another router, whatever its name.

        Returns the seconds until the next one is lifted. Called once the peers are known.
        """
        table, snapshot = self._intent.learned_limits, self._database.snapshot()
        noted, self._noted = self._noted, {}
        peers = self._intent.peers
        rows = [
            LearnedLimit(*key, family, limit, configured_limit(self._options, peer), peer.end)
            for key, limits in noted.items()
            if (peer := peers.get(snapshot, key)) is not None
            for family, limit in limits.items()
        ]
        gone, pauses = [], []
        for row in table.all(snapshot):
            key = (row.instance, row.peer)
            since = self._up_since.get(key)
            pause = None if since is None else since + LIFTED_AFTER_SECONDS - now
            peer = peers.get(snapshot, key)
            is_former = peer is None or row.end not in ("", peer.end)
            if is_former or (pause is not None and pause <= 0):
                gone.append(row)
            elif pause is not None:
                pauses.append(pause)
        if rows or gone:
            with self._database.write(table) as txn:
                replace_some(txn, table, gone, rows)
        return min(pauses, default=None)

    def _rows(self, key: Key) -> Iterable[LearnedLimit]:
        return self._intent.learned_limits.prefix(self._database.snapshot(), KEY, key)


def limits_of(limits: PeerPrefixLimit) -> Mapping[Family, int]:
    """Return the learned limits by family, for which a peer has ended its session.

    A bound that is not below the number of prefixes that the peer was sent would end the next session,
    too: then, and without data in the NOTIFICATION, it is nine tenths of that number.
    """
    sent = dict(limits.advertised)
    if limits.family is not None:
        sent = {limits.family: sent.get(limits.family, 0)}
        if limits.limit is not None and limits.limit < sent[limits.family]:
            return {limits.family: limits.limit}
    return {family: count * 9 // 10 for family, count in sent.items() if count}
