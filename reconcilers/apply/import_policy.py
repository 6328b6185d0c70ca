"""Reconciles the import policies of peers: the prefixes that each of them may contribute.

A policy is part of its peer in the speaker: it comes with a new peer and goes with it. A changed one
reaches an existing peer before its other settings do, and never resets the session.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer
from reconcilers.model import PrefixRule as IntentRule
from reconcilers.sliced_work import Slices, at_once
from reconcilers.target.reconciler import Description, ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from speaker.api import Import, Match, PeerConfig, Policy, PrefixRule, SpeakerPort, Term
from statedb import Database, Snapshot

NEVER = "never"
ACCEPT = "accept"
"""The terms of an import policy."""


class ImportPolicies(SingleValue):
    """Objects are ``(instance, peer)``, values the peer's `Import`."""

    description = Description(
        name="import-policy",
        order=30,
        tables=("peers",),
        target="speaker",
        summary="import policies: the prefixes that are accepted from each peer",
    )

    def __init__(self, db: Database, intent: IntentTables, speaker: SpeakerPort) -> None:
        self._peers = intent.peers
        self._speaker = speaker
        self._changes = intent.peers.changes(db)

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        """Return the peers of the intent that changed: each has one import policy."""
        return at_once(
            {
                (change.row.instance, change.row.name): None
                for change in self._changes.next(snapshot)
            }
        )

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return the peers of the intent: each has one import policy."""
        return ((row.instance, row.name) for row in self._peers.all(snapshot))

    def actual_objects(self) -> Iterable[ObjectKey]:
        """None: an import policy does not outlive its peer, so that there is none to prune."""
        return ()

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if the intent has the peer of an import policy."""
        return self._peers.get(snapshot, key) is not None

    def possible(self, key: ObjectKey) -> bool:
        """True if the speaker has the peer of an import policy, which is created with it."""
        return self._peer(key) is not None

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Import:
        """Return the import policy of a peer of the intent."""
        row = self._peers.get(snapshot, key)
        if row is None:
            raise KeyError(key)
        return import_policy(row)

    def actual_value(self, key: ObjectKey) -> Import | None:
        """Return the import policy that the speaker has of a peer; None without the peer."""
        config = self._peer(key)
        return None if config is None else config.import_

    def set_value(self, key: ObjectKey, value: Import) -> None:
        """Set the import policy of a peer of the speaker, if it has the peer."""
        config = self._peer(key)
        if config is not None:
            self._speaker.set_peer(key[0], msgspec.structs.replace(config, import_=value))

    def delete(self, key: ObjectKey) -> None:
        """Do nothing: no import policy is left without its peer."""

    def _peer(self, key: ObjectKey) -> PeerConfig | None:
        config = self._speaker.peer_config(*key)
        return config if isinstance(config, PeerConfig) else None


def import_policy(peer: Peer) -> Import:
    """Return the import policy of a peer for the speaker: what is rejected, then what is accepted.

    Without prefixes that are never accepted: all, none, or what is within these prefixes.
    """
    if not peer.reject:
        return accepted_prefixes(peer.accept)
    accept = None if peer.accept is None else prefix_rules(peer.accept)
    never = Term(name=NEVER, match=Match(prefixes=prefix_rules(peer.reject)), action="reject")
    return Policy(name="import", terms=(never, Term(name=ACCEPT, match=Match(prefixes=accept))))


def accepted_prefixes(accept: tuple[IntentRule, ...] | None) -> Import:
    """Return the import policy that accepts these prefixes, and no others; None: all of them."""
    return "all" if accept is None else prefix_rules(accept) or "none"


def prefix_rules(rules: Iterable[IntentRule]) -> tuple[PrefixRule, ...]:
    """Return the prefix rules of an import policy for the speaker, in order; equal rules are one."""
    return tuple(dict.fromkeys(PrefixRule(rule.prefix, rule.ge, rule.le) for rule in rules))
