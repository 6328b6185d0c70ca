"""A router's tables, and who is told what of them: route sets, update groups, refreshes.

Tells when it is flushed and not before, so that what changes together is told together. What a group
is told is `speaker.rib.update_group`'s to say; nothing here looks at a route.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, final

from speaker.api import RouteAttributes
from speaker.engine.export_rules import export_rules
from speaker.engine.instance.established_peer import EstablishedPeer
from speaker.engine.ribs import Ribs
from speaker.message import RefreshKind, RouteRefresh
from speaker.nlri import Family
from speaker.rib.export import ExportRules
from speaker.rib.local_routes import LOCAL, LocalPaths
from speaker.rib.update_group import UpdateBatch, UpdateGroup

if TYPE_CHECKING:
    from speaker.engine.instance.instance import Instance


@final
class OutboundUpdates:
    """What one router tells."""

    def __init__(self, instance: Instance) -> None:
        self.loc = Ribs()
        self.sets: dict[str, Ribs] = {}
        self._instance = instance
        self._local_paths = LocalPaths()
        self._groups: dict[ExportRules, UpdateGroup[EstablishedPeer]] = {}
        self._again: dict[EstablishedPeer, set[Family]] = {}
        """Who asked to be told which families again, since the last flush."""

    def inherit(self, before: OutboundUpdates) -> None:
        """Take over the route sets, and our own routes of the Loc-RIB."""
        self.sets = before.sets
        self._local_paths = before._local_paths
        for family, table in before.loc.tables.items():
            for path, nlri in table.best_by_path().items():
                if path.source.local:
                    self.loc.table(family).announce(path, nlri)

    # ----------------------------------------------------------------- routes

    def update_routes(
        self,
        route_set: str | None,
        changes: Mapping[Family, Mapping[bytes, RouteAttributes | None]],
    ) -> None:
        """Change a route set, or our own routes in the Loc-RIB."""
        if route_set is None:
            ribs = self.loc
        else:
            known = self.sets.get(route_set)
            ribs = known if known is not None else self.sets.setdefault(route_set, Ribs())
        self._local_paths.apply(ribs.table, changes)

    def remove_route_set(self, route_set: str) -> None:
        """Withdraw everything in a route set and forget it."""
        ribs = self.sets.get(route_set)
        if ribs is None:
            return
        for table in ribs.tables.values():
            table.withdraw(LOCAL, [nlri for nlri, _ in table.items()])
        self.flush()
        if not any(group.rules.route_set == route_set for group in self._groups.values()):
            del self.sets[route_set]

    # ---------------------------------------------------------------- members

    def join(self, member: EstablishedPeer) -> None:
        """Tell a session everything, with the next flush."""
        member.group = self._group(self._rules(member))
        member.group.join(member)

    def leave(self, member: EstablishedPeer) -> None:
        """Tell a session nothing more."""
        self._again.pop(member, None)
        if member.group is not None:
            member.group.leave(member)
            self._forget_if_empty(member.group)
            member.group = None

    def move(self, member: EstablishedPeer) -> None:
        """Tell a session, whose configuration is another one now, what is different for it."""
        old = member.group
        if old is None:
            return
        rules = self._rules(member)
        if old.rules == rules:
            return
        # Everybody has to know the tables as they are now before they can be compared.
        self.flush()
        new = self._group(rules)
        told = new.export_difference(old, member)
        old.leave(member)
        self._forget_if_empty(old)
        new.add_synchronized(member)
        member.group = new
        self._send(member, told)

    def answer_route_refresh(self, member: EstablishedPeer, family: Family) -> None:
        """Tell a family once more.

        A request is 23 octets, the answer may be a whole table: however often a peer asks, it is
        told once per flush, and not before it has read what it was told last.
        """
        self._again.setdefault(member, set()).add(family)

    def _rules(self, member: EstablishedPeer) -> ExportRules:
        return export_rules(member.peer.config, member.negotiated, member.session.local[0])

    def _ribs(self, rules: ExportRules) -> Ribs:
        if rules.export == "set":
            return self.sets.setdefault(rules.route_set or "", Ribs())
        return self.loc

    def _group(self, rules: ExportRules) -> UpdateGroup[EstablishedPeer]:
        group = self._groups.get(rules)
        if group is None:
            group = self._groups[rules] = UpdateGroup(rules, self._ribs(rules))
        return group

    def _forget_if_empty(self, group: UpdateGroup[EstablishedPeer]) -> None:
        if group.empty:
            self._groups.pop(group.rules, None)

    def groups(self) -> Iterator[UpdateGroup[EstablishedPeer]]:
        """Iterate over the update groups."""
        yield from self._groups.values()

    # ------------------------------------------------------------------ flush

    def _waits(self, group: UpdateGroup[EstablishedPeer]) -> bool:
        return self._instance.restarting and group.rules.exports_received

    @property
    def updates_pending(self) -> bool:
        """Whether somebody has to be told something."""
        if self.loc.changed:
            return True
        for ribs in self.sets.values():
            if ribs.changed:
                return True
        for group in self._groups.values():
            if group.pending_members and not self._waits(group):
                return True
        return any(not member.session.queued for member in self._again) if self._again else False

    def flush(self) -> None:
        """Tell everybody what changed, and pending_members everything."""
        observer = self._instance.observer
        for ribs in (self.loc, *self.sets.values()):
            groups = [
                group
                for group in self._groups.values()
                if group.tables is ribs and not group.exports_nothing
            ]
            if not groups and observer is None:
                ribs.discard_changes()
                continue
            changes = ribs.take_changes()
            touched = ribs.take_touched()
            if not changes and not touched:
                continue
            if observer is not None and ribs is self.loc:
                observer.loc_rib_changed(self._instance, changes)
            for group in groups:
                for member, told in group.export_changes(changes, touched):
                    self._send(member, told)
        if self._again:
            self._answer_route_refreshes()
        for group in self._groups.values():
            if group.pending_members and not self._waits(group):
                for member, told in group.export_initial_table():
                    self._send(member, told)

    def _answer_route_refreshes(self) -> None:
        for member in [member for member in self._again if not member.session.queued]:
            families = self._again.pop(member)
            if member.group is None or member in member.group.pending_members:
                # It is told everything anyway.
                continue
            marked = member.negotiated.enhanced_route_refresh
            for family in sorted(families):
                if marked:
                    member.session.send(RouteRefresh(family, RefreshKind.BEGIN).encode())
                self._send(member, member.group.export_table(member, family))
                if marked:
                    member.session.send(RouteRefresh(family, RefreshKind.END).encode())

    def _send(self, member: EstablishedPeer, told: UpdateBatch) -> None:
        if told.octets:
            member.session.send_updates((told.octets,), told.messages, told.prefixes)
            observer = self._instance.observer
            if observer is not None:
                observer.updates_sent(member, told)
