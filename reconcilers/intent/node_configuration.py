"""The configuration of a node: the instances, peers, conditions and objects of all its dialects.

Each dialect compiles its intent without the others. Here they meet: peers that cannot be configured
are removed, the dialects are arbitrated, and what concerns all of them is applied, which is draining
and the limits of peers. `IntentCompiler` decides when; routes are not part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from msgspec.structs import replace

from reconcilers.dialect import NodeContext, NodeIntent
from reconcilers.intent import drain
from reconcilers.intent.arbitrate import Owners, arbitrate
from reconcilers.intent.configurable import configurable
from reconcilers.intent.created import created
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.peer_limits import PeerLimits
from reconcilers.intent.unconfigured import with_unconfigured
from reconcilers.intent.vrfs import vrf_problems
from reconcilers.intent_tables import OF_DIALECTS, IntentTables, RowKind, marked
from reconcilers.model import Peer, PendingDialect, Problem
from reconcilers.sliced_work import Pieces, Slices
from resources.core import Node
from resources.tables import Tables
from statedb import Snapshot, WriteTxn

PIECES_OF_PEER: Final = 2
"""Pieces of a slice for one step of a configuration, each peer."""


class Configuration(NamedTuple):
    """The rows of a configuration."""

    rows: Mapping[RowKind[Any], list[Any]]
    arbitrated: Sequence[Peer]
    """The peers without the effect of draining and of limits."""
    problems: list[Problem]


class Written(NamedTuple):
    """The parts that differ from the configuration before."""

    peers: bool
    problems: bool
    """True as well if there are peers that may have problems: of unsent routes, of BFD."""


@final
class NodeConfiguration:
    """The configuration as of the last compilation."""

    def __init__(
        self,
        resources: Tables,
        intent: IntentTables,
        options: IntentOptions,
        owners: Owners,
        peer_limits: PeerLimits,
        pieces: Pieces,
    ) -> None:
        """``owners`` are the claims of an earlier process (`reconcilers.intent.arbitrate`)."""
        self._resources = resources
        self._intent = intent
        self._options = options
        self._peer_limits = peer_limits
        self._pieces = pieces
        self.owners = owners
        """The dialect that has each claim, for the next process."""
        self.problems: list[Problem] = []
        """Of the configuration; problems of single objects are in the route sets."""
        self._has_bfd = False
        """Whether a peer had BFD."""

    def compile(
        self,
        snapshot: Snapshot,
        intents: Mapping[str, NodeIntent],
        context: NodeContext,
        node: Node | None,
        *,
        pending: Sequence[PendingDialect],
        problems: Sequence[Problem],
    ) -> Slices[Configuration]:
        """Arbitrate between the dialects, and return the rows of the node's configuration.

        ``intents`` are in effect, ``pending`` the dialects that have not been read, ``problems`` what
        concerns dialects as a whole.
        """
        all_problems = [*problems]
        rows: dict[RowKind[Any], list[Any]] = {kind: [] for kind in OF_DIALECTS}
        for name, intent in intents.items():
            all_problems += intent.problems_of(name)
            for kind, of_kind in marked(intent, OF_DIALECTS, name).items():
                rows[kind] += of_kind
        instances, of_dialects = rows[IntentTables.instances], len(all_problems)
        peers = configurable(
            (
                peer
                if peer.route_set is None
                else replace(peer, route_set=f"{peer.dialect}-{peer.route_set}")
                for peer in rows[IntentTables.peers]
            ),
            all_problems,
        )
        all_problems += vrf_problems(instances, context.host, context.node)
        arbitrated = arbitrate(
            instances,
            peers,
            self.owners,
            lambda ref: created(self._resources, self._intent, snapshot, ref),
            [row.dialect for row in pending],
        )
        self.owners = arbitrated.owners
        all_problems += arbitrated.problems
        if self._pieces.fill_slice(len(peers) * PIECES_OF_PEER):
            yield
        drain_reason = drain.reason(node, self._options)
        sessions = arbitrated.peers
        if drain_reason is not None:
            sessions = drain.drained(sessions, drain_reason, context.node, self._options)
        learned_limits = self._intent.learned_limits.all(snapshot)
        rows[IntentTables.instances] = arbitrated.instances
        rows[IntentTables.peers] = self._peer_limits.apply(sessions, learned_limits)
        conditions = with_unconfigured(rows[IntentTables.conditions], all_problems[of_dialects:])
        rows[IntentTables.conditions] = list(conditions)
        rows[IntentTables.pending_dialects] = list(pending)
        return Configuration(rows, arbitrated.peers, all_problems)

    def write(
        self, txn: WriteTxn, snapshot: Snapshot, configuration: Configuration
    ) -> Slices[Written]:
        """Write the node's configuration where rows differ; problems are the caller's."""
        intent, rows = self._intent, configuration.rows
        peers: Sequence[Peer] = rows[IntentTables.peers]
        if self._pieces.fill_slice(len(peers) * PIECES_OF_PEER):
            yield
        peers_changed = False
        for kind in intent.outdated(txn, rows):
            intent.replace(txn, kind, rows[kind])
            peers_changed |= kind is IntentTables.peers
        before, self.problems = self.problems, configuration.problems
        had_bfd, self._has_bfd = self._has_bfd, any(peer.bfd is not None for peer in peers)
        # The problems of unsent routes and of BFD have the objects of peers.
        of_peers = had_bfd or self._has_bfd or intent.unsent_routes.count(snapshot) > 0
        return Written(peers_changed, before != self.problems or of_peers)
