"""Resolves the next hops of all forwarding classes again, pass after pass, in slices. Pure.

A pass goes once through the classes of all instances. What happens meanwhile does not begin it again: a
further pass follows. Until the last class is resolved all of them lead where they led before, so that
no route is written by half a pass. Then the classes change set by set: all classes that shared a set
of next hops at once, so that the kernel can move their routes by one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias, final

from reconcilers.kernel.forwarding import (
    Forwarding,
    ForwardingClass,
    ForwardingRules,
    NextHopSets,
)
from reconcilers.kernel.routing import Routing
from reconcilers.kernel.writer.protocol_messages import BLACKHOLE, NextHopSet

RESOLVED: Final = 1000
"""Classes of a slice, of all instances: three to five milliseconds."""

Moves: TypeAlias = dict[NextHopSet, NextHopSet | None]
"""New sets of next hops by the former ones, which no class uses any more; None removes the routes."""


def moves_of_earlier_routes(moves: Moves, *, remove: bool) -> Moves:
    """Return the moves that suit routes of an earlier process, or with a pending next hop, as well.

    Such routes may have the same next hops by other peers: they lose a next hop that is gone, and get
    none in its place. ``remove``: all of them are announced again, so none is removed in error.
    """
    return {
        before: after
        for before, after in moves.items()
        if (remove if after is None else set(after) < set(before))
    }


class ChangedClass(NamedTuple):
    """A class that leads to other next hops than before."""

    rules: ForwardingRules
    of: ForwardingClass
    after: Forwarding


Publish: TypeAlias = Callable[[Sequence[ChangedClass], Moves], None]


@final
class Resolution:
    """The pass under way over the classes of all instances, and whether another pass is due."""

    def __init__(
        self, routing: Routing, sets: NextHopSets, publish: Publish, end: Callable[[], None]
    ) -> None:
        """``publish`` is given the classes that have changed; ``end`` is called after each pass."""
        self._routing = routing
        self._sets = sets
        self._publish = publish
        self._end = end
        self._due: list[ForwardingRules] | None = None
        """The instances of a pass that is due, as of the last event."""
        self._rest: Iterator[tuple[ForwardingRules, ForwardingClass]] | None = None
        """The classes that the pass still comes to; None without a pass."""
        self._changed: dict[NextHopSet | None, list[ChangedClass]] = {}
        """Classes that lead elsewhere after the pass, by their next hops of before."""
        self.passes = 0
        """The number of passes that have ended."""

    def refresh(self, rules: Iterable[ForwardingRules]) -> None:
        """Have a pass over the classes of all instances begin, after the one under way.

        What the one under way comes to from now on it resolves by the present state.
        """
        self._due = list(rules)
        for each in self._due:
            each.forget_hops()

    @property
    def resolving(self) -> bool:
        """Whether a pass is under way, or due."""
        return self._rest is not None or self._due is not None

    def step(self) -> None:
        """Do a slice of the pass under way, or of the pass that is due."""
        if self._rest is None:
            if self._due is None:
                return
            self._begin(self._due)
        room = RESOLVED
        for rules, each in islice(self._rest or (), RESOLVED):
            room -= 1
            self._resolve(rules, each)
        if room:
            self._publish_some()
            if not self._changed:
                self._rest = None
                self._routing.end()
                self.passes += 1
                self._end()

    def _begin(self, due: Sequence[ForwardingRules]) -> None:
        self._due = None
        self._routing.begin()
        self._sets.begin()
        for rules in due:
            rules.forget_hops()
        self._rest = ((rules, each) for rules in due for each in tuple(rules.classes))

    def _resolve(self, rules: ForwardingRules, each: ForwardingClass) -> None:
        before, after = each.forwarding, rules.resolved(each.key)
        # What was pending kept its next hops in the kernel, also where there are none now.
        if after.next_hops == before.next_hops and after.pending == before.pending:
            each.forwarding = after
        else:
            changed = self._changed.setdefault(before.next_hops, [])
            changed.append(ChangedClass(rules, each, after))

    def _publish_some(self) -> None:
        """Change the classes of some sets: all of a set, but for classes without a route before."""
        room = RESOLVED
        some: list[ChangedClass] = []
        moves: Moves = {}
        while self._changed and room > 0:
            before, group = self._changed.popitem()
            if before is None and len(group) > room:
                self._changed[None] = group[room:]
                del group[room:]
            room -= len(group)
            some += group
            afters = {change.after.next_hops for change in group}
            if (
                before not in (None, BLACKHOLE)
                and before not in self._sets
                and len(afters) == 1
                and not any(change.after.pending for change in group)
            ):
                moves[before] = afters.pop()
        for change in some:
            change.of.forwarding = change.after
        if some:
            self._publish(some, moves)
