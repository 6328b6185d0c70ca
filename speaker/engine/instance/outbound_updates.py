"""Outbound updates of one instance: its Loc-RIB and route sets, update groups and route refresh.

Changes are collected and sent together by `OutboundUpdates.send_pending`. The contents of an UPDATE
are `speaker.rib.update_group`'s; no route is looked at here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias, final

from speaker.api import RouteAttributes, RouteLeftOut
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.export_rules import export_rules
from speaker.engine.instance.group_changes import GroupChanges
from speaker.engine.instance.inherited_routes import InheritedRoutes
from speaker.engine.instance.route_sets import RouteSets
from speaker.engine.observer import ObserverSlot
from speaker.engine.ribs import Ribs
from speaker.engine.selection_deferral import SelectionDeferral
from speaker.engine.sliced_work import (
    FAILOVER_UNITS,
    LOOKUPS_PER_UNIT,
    SLICE_UNITS,
    STEP_ROUTES,
    SlicedWork,
    Steps,
)
from speaker.message import RefreshKind, RouteRefresh
from speaker.nlri import Family, prefix_to_text
from speaker.peer.engine_context import EngineContext
from speaker.rib.decision import Metric
from speaker.rib.export import ExportRules
from speaker.rib.loc_rib import TableChanges
from speaker.rib.local_routes import LocalPaths
from speaker.rib.update_group import UpdateBatch, UpdateGroup


class LocRibFollower(Protocol):
    """A follower of an instance's Loc-RIB: imports, a stream of best paths, a BMP station."""

    def changed(self, changes: Mapping[Family, TableChanges]) -> None:
        """Take the changes of all tables, before any UPDATE about them is sent."""


_Group: TypeAlias = UpdateGroup[EstablishedPeer]


@final
class OutboundUpdates:
    """The RIBs and update groups of one instance."""

    def __init__(
        self,
        context: EngineContext,
        instance: str,
        deferral: SelectionDeferral,
        slot: ObserverSlot,
        work: SlicedWork,
    ) -> None:
        """Start with empty tables; ``instance`` is its name, ``slot`` the engine's observer.

        ``work`` is what the engine does in slices: large initial tables.
        """
        self._work = work
        self._context = context
        self.loc = Ribs()
        """The Loc-RIB."""
        self.inherited_routes = InheritedRoutes(self.loc, work)
        """The local routes from before the instance was this router."""
        self.route_sets = RouteSets(self, work)
        self._instance = instance
        self._deferral = deferral
        self._slot = slot
        self._local_paths = LocalPaths()
        self._groups: dict[ExportRules, _Group] = {}
        self._changes = GroupChanges(self, work)
        """Sessions on their way from one group to another."""
        self._refreshes: dict[EstablishedPeer, set[Family]] = {}
        """The families of ROUTE-REFRESHes that are not answered yet."""
        self._answering: set[EstablishedPeer] = set()
        """The sessions whose answer is being sent."""
        self.followers: dict[LocRibFollower, None] = {}
        """Receivers of the Loc-RIB's changes, before the peers."""
        self._reapplying: dict[EstablishedPeer, None] = {}
        """Sessions with a changed import policy that is not applied to all received routes yet."""

    def inherit(self, before: OutboundUpdates) -> None:
        """Take over the route sets, and the local routes of the Loc-RIB."""
        self.route_sets = before.route_sets
        self.route_sets.owner = self
        self._local_paths = before._local_paths
        self.inherited_routes.inherit(before.inherited_routes)

    # ----------------------------------------------------------------- routes

    def update_routes(
        self,
        route_set: str | None,
        changes: Mapping[Family, Mapping[bytes, RouteAttributes | None]],
    ) -> None:
        """Change a route set, or (None) the local routes of the Loc-RIB.

        ``changes``: per family, the prefix as on the wire -> its attributes; None withdraws it.
        """
        if route_set is None:
            ribs = self.loc
            if self.inherited_routes.formers:
                for family, routes in changes.items():
                    self.inherited_routes.note(family, routes)
        else:
            known = self.route_sets.tables.get(route_set)
            ribs = known if known is not None else self.route_sets.ribs(route_set)
            if self.route_sets.removals:
                self.route_sets.changed(route_set, changes)
        self._local_paths.apply(ribs.table, changes)

    def uses(self, route_set: str) -> bool:
        """Return whether an update group has the routes of a set (`RouteSetsOwner`)."""
        return any(group.rules.route_set == route_set for group in self._groups.values())

    def concern(self, route_set: str) -> bool:
        """Return whether a session is on its way from or to a set (`RouteSetsOwner`)."""
        return self._changes.concern(route_set)

    def reselect(self, metric: Metric | None) -> Steps:
        """Select the best paths of the Loc-RIB by another metric of next hops, in steps."""
        self.loc.set_metric(metric)
        return self._reselect()

    def _reselect(self) -> Steps:
        if not any(table.several for table in self.loc.tables.values()):
            return
        for _, table, some in self.loc.slices(STEP_ROUTES):
            if some is None:
                yield SLICE_UNITS
            else:
                yield FAILOVER_UNITS * table.reselect(some) + len(some) // LOOKUPS_PER_UNIT

    # ------------------------------------------------------------------ peers

    def join(self, established: EstablishedPeer) -> None:
        """Add a session to its update group; `send_pending` sends it the initial table."""
        established.group = self.group(self._rules(established))
        established.group.join(established)

    def leave(self, established: EstablishedPeer) -> None:
        """Remove a session from its update group."""
        self._refreshes.pop(established, None)
        self._changes.abandon(established)
        if established.group is not None:
            established.group.leave(established)
            self.discard_if_empty(established.group)
            established.group = None

    def change_group(self, established: EstablishedPeer) -> None:
        """Apply a changed configuration: a session gets the difference between two groups.

        Where tables are large in steps, which `send_pending` begins.
        """
        old = established.group
        if old is None:
            return
        rules = self._rules(established)
        if self._changes.leads_to(established, rules):
            return
        self._changes.abandon(established)
        if old.rules == rules:
            return
        # All members must have the present tables before two groups can be compared.
        self._send_pending()
        if established in old.pending_members:
            # Its initial table is deferred, and will be that of the new group.
            old.leave(established)
            self.discard_if_empty(old)
            self.join(established)
            return
        self._changes.change(established, old, self.group(rules))

    def answer_route_refresh(self, established: EstablishedPeer, family: Family) -> None:
        """Advertise a family again, with the next `send_pending` (RFC 2918, RFC 7313).

        A ROUTE-REFRESH is 23 octets, its answer may be a whole table: any number of them is
        answered once, and not before the peer has read the previous answer.
        """
        self._refreshes.setdefault(established, set()).add(family)

    def policy_changed(self, established: EstablishedPeer) -> None:
        """Report a changed import policy once it is applied to all held routes.

        Each `apply_policies` applies it to a slice of them.
        """
        for former in [
            member for member in self._reapplying if member.adj_in is established.adj_in
        ]:
            # The session that the peer had before it restarted.
            del self._reapplying[former]
        self._reapplying[established] = None
        self._report_applied(established)

    def _report_applied(self, established: EstablishedPeer) -> None:
        if established.adj_in.reapplying:
            return
        del self._reapplying[established]
        observer = self._slot.observer
        if observer is not None and established.group is not None:
            observer.policy_changed(established)

    def _rules(self, established: EstablishedPeer) -> ExportRules:
        session = established.session
        return export_rules(
            established.peer.config,
            established.negotiated,
            session.local[0],
            session.interface_address,
        )

    def ribs(self, rules: ExportRules) -> Ribs:
        """Return the tables of a group (`GroupsOwner`)."""
        if rules.export == "set":
            return self.route_sets.ribs(rules.route_set or "")
        return self.loc

    def group(self, rules: ExportRules) -> _Group:
        """Return the group with export rules, created on first use (`GroupsOwner`)."""
        group = self._groups.get(rules)
        if group is None:
            ribs = self.ribs(rules)
            for family in set(rules.add_path) & set(rules.sendable):
                # A route set may be empty so far: its Adj-RIB-Out follows the table from the beginning.
                ribs.table(family)
            group = self._groups[rules] = UpdateGroup(rules, ribs)
        return group

    def discard_if_empty(self, group: _Group) -> None:
        """Forget a group without sessions (`GroupsOwner`)."""
        if group.empty:
            self._groups.pop(group.rules, None)
            self._changes.differences.clear()

    def forget_received(self) -> None:
        """Release received paths that are cached: an ended session has no routes any more."""
        for group in self._groups.values():
            group.forget_received()

    def groups(self) -> Iterator[_Group]:
        """Iterate over the update groups."""
        yield from self._groups.values()

    # ------------------------------------------------------------------- send

    def _deferred(self, group: _Group) -> bool:
        if self.inherited_routes.formers and group.tables is self.loc:
            # The initial table has them, so that no peer drops routes that it kept (RFC 4724).
            return True
        return self._deferral.active and group.rules.exports_received

    @property
    def pending(self) -> bool:
        """Whether `send_pending` has UPDATEs to send."""
        if self.loc.changed or self._reapplying or self._changes.waiting:
            return True
        if self.route_sets.removals and self.route_sets.removable:
            return True
        for ribs in self.route_sets.tables.values():
            if ribs.changed:
                return True
        for group in self._groups.values():
            if group.pending_members and group.initial_table is None and not self._deferred(group):
                return True
        return bool(self._refreshes) and bool(self._answerable())

    @property
    def applies_policies(self) -> bool:
        """Whether `apply_policies` has anything to do."""
        return bool(self._reapplying)

    def apply_policies(self) -> None:
        """Apply changed import policies to the next slice of the received routes."""
        for established in list(self._reapplying):
            established.adj_in.reapply()
            self._report_applied(established)

    def send_table_changes(self) -> None:
        """Send the changes of the Loc-RIB alone."""
        self.send_changes(self.loc)

    def send_pending(self) -> None:
        """Send the changes since the last call, answers to route refreshes, and initial tables."""
        self._changes.differences.clear()
        if self.route_sets.removals:
            self.route_sets.start_removals()
        self._send_pending()
        if self._changes.waiting:
            self._changes.start()

    def _send_pending(self) -> None:
        for ribs in (self.loc, *self.route_sets.tables.values()):
            self.send_changes(ribs)
        if self._refreshes:
            self._answer_route_refreshes()
        for group in list(self._groups.values()):
            if group.pending_members and group.initial_table is None and not self._deferred(group):
                table = group.take_initial_table()
                if table is not None:
                    table.start(partial(self.send_changes, self.ribs(group.rules)), self.send)
                    self._work.add(table.steps)
                else:
                    self._send_all(group.export_initial_table())
            if group.left_out.reported:
                self._report_left_out(group)

    def _report_left_out(self, group: _Group) -> None:
        """Report routes that are not advertised because they cannot be encoded."""
        add_path = group.rules.add_path
        for report in group.left_out.take_reports():
            nlri = report.nlri[4:] if report.family in add_path else report.nlri
            self._context.report(
                RouteLeftOut(
                    instance=self._instance,
                    peers=tuple(member.peer.name for member in group.members),
                    family=report.family,
                    prefix=prefix_to_text(report.family, nlri),
                    count=report.total,
                    reason=report.reason,
                )
            )

    def send_changes(self, ribs: Ribs) -> None:
        """Send the changes of some tables to the members of their groups (`GroupsOwner`)."""
        groups = [
            group
            for group in self._groups.values()
            if group.tables is ribs and not group.exports_nothing
        ]
        # A copy: a station that fails stops to follow.
        followers = tuple(self.followers) if self.followers and ribs is self.loc else ()
        if not groups and not followers:
            ribs.discard_changes()
            return
        changes = ribs.take_changes()
        if not changes:
            return
        for follower in followers:
            follower.changed(changes)
        for change in self._changes.running:
            change.note(ribs, changes)
        for group in groups:
            self._send_all(group.export_changes(changes))

    def _answerable(self) -> list[EstablishedPeer]:
        """Return the sessions with a route refresh that can be answered now."""
        return [
            refresh
            for refresh in self._refreshes
            if not refresh.session.queued
            and refresh not in self._answering
            and not (refresh.group is not None and refresh.group.is_sent_in_steps(refresh))
        ]

    def _answer_route_refreshes(self) -> None:
        for established in self._answerable():
            families = self._refreshes.pop(established)
            group = established.group
            if group is None or established in group.pending_members:
                # The initial table is the answer.
                continue
            self._answering.add(established)
            self._work.add(self._answer(established, sorted(families)))

    def _answer(self, established: EstablishedPeer, families: Sequence[Family]) -> Steps:
        """Send the present routes of all prefixes of some families, in steps.

        A session gets changes meanwhile, before or after the routes that they change, and the
        difference where it moves to another group.
        """
        session = established.session
        delimited = established.negotiated.enhanced_route_refresh
        try:
            for family in families:
                if established.group is None:
                    return
                if delimited:
                    session.send(RouteRefresh(family, RefreshKind.BEGIN).encode())
                for units, prefixes in established.group.export_table_in_steps(family):
                    if established.group is None:
                        return
                    if prefixes:
                        batch = established.group.export_prefixes(family, prefixes, established)
                        self.send(established, batch)
                    yield units
                if established.group is None:
                    return
                if delimited:
                    session.send(RouteRefresh(family, RefreshKind.END).encode())
                established.group.count_left_out()
        finally:
            self._answering.discard(established)

    def send(self, established: EstablishedPeer, batch: UpdateBatch) -> None:
        """Send a session UPDATEs (`GroupsOwner`)."""
        self._send_all(((established, batch),))

    def _send_all(self, batches: Iterable[tuple[EstablishedPeer, UpdateBatch]]) -> None:
        """Send each session its UPDATEs: what is the same for all of them is done once."""
        observer = self._slot.observer
        for established, batch in batches:
            if batch.octets:
                established.session.send_updates((batch.octets,), batch.messages, batch.prefixes)
                if observer is not None:
                    observer.updates_sent(established, batch)
