"""Sessions whose changed settings move them from one update group to another, in one turn or in steps.

Only differences are sent. Where a table is large, the difference is encoded in steps
(`speaker.rib.group_change`), once for the sessions that change together, as after a reload.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol, TypeAlias, final

from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.ribs import Ribs
from speaker.engine.sliced_work import SlicedWork, Steps
from speaker.rib.export import ExportRules
from speaker.rib.group_change import GroupChange
from speaker.rib.update_group import UpdateBatch, UpdateGroup

_Group: TypeAlias = UpdateGroup[EstablishedPeer]
_Change: TypeAlias = GroupChange[EstablishedPeer]


class GroupsOwner(Protocol):
    """The owner of the update groups and of their tables."""

    def group(self, rules: ExportRules) -> _Group:
        """Return the group with export rules, created on first use."""

    def discard_if_empty(self, group: _Group) -> None:
        """Forget a group without sessions."""

    def ribs(self, rules: ExportRules) -> Ribs:
        """Return the tables of a group."""

    def send_changes(self, ribs: Ribs) -> None:
        """Send the changes of some tables to the members of their groups, and call `note`."""

    def send(self, established: EstablishedPeer, batch: UpdateBatch) -> None:
        """Send a session UPDATEs."""


@final
class GroupChanges:
    """The changes of one instance."""

    __slots__ = ("_owner", "_work", "differences", "running", "waiting")

    def __init__(self, owner: GroupsOwner, work: SlicedWork) -> None:
        self._owner: Final = owner
        self._work: Final = work
        self.differences: dict[tuple[_Group, _Group], tuple[object, UpdateBatch]] = {}
        """UPDATEs from one group to another, behind the revisions of their tables."""
        self.waiting: dict[tuple[_Group, _Group], _Change] = {}
        """Changes in steps that begin with the next sending of UPDATEs."""
        self.running: dict[_Change, None] = {}
        """Changes in steps that have begun."""

    def change(self, established: EstablishedPeer, old: _Group, new: _Group) -> None:
        """Move a complete member of a group to another, in steps if the tables are large.

        The members have the present tables.
        """
        if old.is_large or new.is_large or old.is_sent_in_steps(established):
            change = self.waiting.get((old, new))
            if change is None:
                change = self.waiting[old, new] = GroupChange(old, new)
                new.arriving += 1
            change.members[established] = []
            return
        self._complete_initial_table(old, (established,))
        difference = self._difference(old, new, established)
        self._move(old, new, established, difference)

    def _move(
        self, old: _Group, new: _Group, established: EstablishedPeer, difference: UpdateBatch
    ) -> None:
        old.leave(established)
        self._owner.discard_if_empty(old)
        new.add_synchronized(established)
        established.group = new
        self._owner.send(established, difference)

    @staticmethod
    def _complete_initial_table(group: _Group, members: Iterable[EstablishedPeer]) -> None:
        """Send the rest of an initial table: a part of one cannot be compared."""
        if group.initial_table is not None and any(map(group.is_sent_in_steps, members)):
            for _ in group.initial_table.steps:
                pass

    def _difference(self, old: _Group, new: _Group, established: EstablishedPeer) -> UpdateBatch:
        """Return the UPDATEs from one group to another, encoded once for sessions without own routes.

        Usually all sessions of a group change at once, as their route set is replaced.
        """
        if old.has_routes_of(established) or new.has_routes_of(established):
            return new.export_difference(old, established)
        groups, revisions = (old, new), (old.revisions, new.revisions)
        known = self.differences.get(groups)
        if known is None or known[0] != revisions:
            batch = new.export_difference(old, established)
            known = self.differences[groups] = (revisions, batch)
        return known[1]

    def leads_to(self, established: EstablishedPeer, rules: ExportRules) -> bool:
        """Return whether a session changes to the group with some rules already."""
        return any(
            established in change.members and change.after.rules == rules
            for change in (*self.waiting.values(), *self.running)
        )

    def abandon(self, established: EstablishedPeer) -> None:
        """End the change of a session, which remains in the group before."""
        for groups, change in list(self.waiting.items()):
            change.members.pop(established, None)
            if not change.members:
                del self.waiting[groups]
                self._end(change)
        for change in self.running:
            change.members.pop(established, None)

    def start(self) -> None:
        """Begin the changes that wait, once their sessions have the whole table."""
        for groups, change in list(self.waiting.items()):
            if not any(map(change.before.is_sent_in_steps, change.members)):
                del self.waiting[groups]
                self.running[change] = None
                self._work.add(self._steps(change))

    def concern(self, route_set: str) -> bool:
        """Return whether a session is on its way from or to a route set."""
        return any(
            route_set in (change.before.rules.route_set, change.after.rules.route_set)
            for change in (*self.waiting.values(), *self.running)
        )

    def _steps(self, change: _Change) -> Steps:
        owner, old, new = self._owner, change.before, change.after
        ribs, others = owner.ribs(new.rules), owner.ribs(old.rules)

        def flush() -> None:
            owner.send_changes(ribs)
            if others is not ribs:
                owner.send_changes(others)

        try:
            yield from change.steps(flush, partial(self._move, old, new))
        finally:
            self.running.pop(change, None)
            self._end(change)

    def _end(self, change: _Change) -> None:
        change.after.arriving -= 1
        self._owner.discard_if_empty(change.after)
