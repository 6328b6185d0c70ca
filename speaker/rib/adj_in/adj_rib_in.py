"""The Adj-RIB-In of one session: every received route, whether it is used or not.

Holds paths as received, before the import policy, and announces to the Loc-RIB the eligible and
accepted paths; so a changed policy applies without a ROUTE-REFRESH (soft reconfiguration
inbound), but for routes that were rejected beyond the number that is kept. Holds no object per prefix
(`speaker.rib.adj_in.held_routes`).

With ADD-PATH (RFC 7911) the key of a route is the prefix behind its path identifier, as on the wire,
and each identifier is a source of its own for the Loc-RIB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from speaker.nlri import Family
from speaker.rib.adj_in.announced_routes import AnnouncedRoutes
from speaker.rib.adj_in.departed import DepartedRoutes
from speaker.rib.adj_in.reapply import PendingKeys
from speaker.rib.adj_in.shared import SharedAdjRibIn
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy, PrefixList, accepts_more, changed_prefixes
from speaker.rib.prefix_table import PrefixTable


class AdjRibIn(AnnouncedRoutes):
    """The received routes of one session, its policy, and their changes."""

    __slots__ = ("_departed", "_reapply")

    def __init__(
        self,
        source: Source,
        policy: CompiledPolicy | None,
        loc_rib: Mapping[Family, LocRib],
        numbers: Iterator[int],
        add_path: frozenset[Family] = frozenset(),
        keep: int | None = None,
        *,
        refreshable: bool = True,
    ) -> None:
        """Start empty, with the families of ``loc_rib``.

        ``numbers`` are for new sources, ``add_path`` the families with path identifiers. A
        policy of None accepts every route unchanged. ``keep`` is the number of routes that are kept
        although the policy rejects them; None keeps all. So do routes that cannot be requested again
        (``refreshable``: RFC 2918), unless the policy rejects every route.
        """
        super().__init__(source, policy, loc_rib, numbers, add_path, keep, refreshable=refreshable)
        self._reapply = PendingKeys()
        """The keys to which a changed policy is still to be applied."""
        self._departed: list[DepartedRoutes] = []
        """The families that the present session cleared, while their routes are being removed."""
        for family in loc_rib:
            self._choose_storage(family)

    def _choose_storage(self, family: Family) -> None:
        """Decide where the routes of an empty family will be held."""
        self._shared.pop(family, None)
        if self._policy is None and family not in self.path_ids.families:
            self._shared[family] = SharedAdjRibIn(self._loc[family], self.source)

    def forget_unused_sources(self) -> None:
        """Forget path identifiers without a route; see `ReceivedPathIds.forget_unused_sources`."""
        self.path_ids.forget_unused_sources(self._tables)

    def attach(
        self,
        loc_rib: Mapping[Family, LocRib],
        add_path: frozenset[Family],
        *,
        refreshable: bool = True,
    ) -> list[DepartedRoutes]:
        """Continue in a new session of the peer, with its families; the others are cleared.

        So are families with path identifiers in only one of the two sessions: their keys differ.
        Returns the cleared families, whose routes the caller removes from the Loc-RIB.
        """
        changed = self._tables.keys() & (self.path_ids.families ^ add_path)
        departed = [self._depart(family) for family in sorted(changed)]
        self.path_ids.set_families(add_path)
        for family in sorted(self._tables.keys() - loc_rib.keys()):
            departed.append(self._depart(family))
            del self._tables[family], self._not_installed[family]
            self._shared.pop(family, None)
        for family in loc_rib.keys() - self._tables.keys():
            self._tables[family] = PrefixTable()
            self._not_installed[family] = PrefixTable()
        self._loc = loc_rib
        self._refreshable = refreshable
        for routes in self._departed:
            if routes.family in loc_rib:
                # Of a session before the last one: its source is that of the new session's routes.
                routes.finish()
        self._departed = [r for r in (*self._departed, *departed) if not r.finished]
        for family in loc_rib:
            if family not in self._shared:
                self._choose_storage(family)
        return departed

    def depart(self) -> list[DepartedRoutes]:
        """Give up all routes: the session ended, and no new session continues with them.

        The caller removes them from the Loc-RIB.
        """
        self._reapply.clear()
        return [self._depart(family) for family in self._tables]

    def _depart(self, family: Family) -> DepartedRoutes:
        shared = self._shared.pop(family, None)
        routes = DepartedRoutes(
            family,
            self.source,
            dict(self.path_ids.sources) if family in self.path_ids.families else None,
            self._loc[family],
            self._tables[family],
            shared,
            self._not_installed[family],
            self._marks.pop(family, []),
            installed=(shared is None or family in self._mixed) and self._has_installed(family),
        )
        self.changes += 1
        self._mixed.discard(family)
        self._tables[family] = PrefixTable()
        self._not_installed[family] = PrefixTable()
        self._counted.pop(family, None)
        self.path_ids.clear(family)
        return routes

    def replace_stale(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Replace the path of stale routes; they remain stale."""
        marks = self._marks.pop(family, [])
        self.announce(family, path, nlri)
        if marks:
            self._marks[family] = marks
        if family in self._counted:
            # Whether the peer still has a stale route is not known.
            self._counted[family].remove(nlri)

    # ------------------------------------------------------------------ policy

    @property
    def keeps_all(self) -> bool:
        """Whether all received routes are kept, whatever the policy decides."""
        return self._policy is None or self._kept is None

    def set_keep(self, keep: int | None) -> None:
        """Change the number of kept routes.

        A smaller one applies to the held routes: `reapply` drops the rest of them while
        `reapplying` is True. The caller requests routes again that are `not_kept`.
        """
        self._keep = keep
        if self._policy is not None:
            self._begin(None)

    def set_policy(self, policy: CompiledPolicy | None) -> bool:
        """Change the import policy and apply it to held routes (soft reconfiguration inbound).

        `reapply` applies it to the rest of them while `reapplying` is True. To routes that are
        `not_kept` it cannot be applied. Returns whether the policy may accept a route that was rejected
        before: then the caller requests the routes that are `not_kept`.
        """
        before, self._policy = self._policy, policy
        if policy is None or before is None:
            if policy is not before:
                self._change_storage()
                self._begin(None)
            return policy is None
        # During a change the Loc-RIB is that of neither policy.
        self._begin(None if self._reapply else changed_prefixes(before.policy, policy.policy))
        return not policy.accepts_nothing and accepts_more(before.policy, policy.policy)

    def _change_storage(self) -> None:
        """Let the routes of families without path identifiers be held in two places."""
        for family, table in self._tables.items():
            if family in self.path_ids.families:
                continue
            if family not in self._shared:
                self._shared[family] = SharedAdjRibIn(self._loc[family], self.source)
            elif family not in self._mixed and table:
                # The table has the ineligible routes.
                self._not_installed[family].insert(list(table), True)
            self._mixed.add(family)

    def _begin(self, only: PrefixList | None) -> None:
        """Begin to apply the policy, to these prefixes only, or (None) to all."""
        self._reapply.clear()
        policy = self._policy
        for family, table in self._tables.items():
            skip = 4 if family in self.path_ids.families else 0
            self._reapply.add(family, table, self._revision, only, skip=skip)
            if policy is not None and family in self._mixed:
                self._reapply.add_lists(family, self._shared[family].prefix_lists())
        room = self._kept
        if self.accepts_nothing and room is not None:
            for family, table in self._tables.items():
                self._reapply.add_beyond(family, table, self._revision, room)
                room = max(0, room - len(table))
        self.reapply()

    @property
    def reapplying(self) -> bool:
        """Whether a changed policy is still to be applied to some held routes."""
        return bool(self._reapply)

    def reapply(self) -> None:
        """Apply a changed policy to the next slice of the held routes, or leave some of them out."""
        for family, keys, is_beyond in self._reapply.take():
            if family not in self._tables:
                continue  # the present session does not have it
            if is_beyond:
                self._leave_out(family, keys)
                continue
            table = self._tables[family]
            held = [key for key in keys if key in table]
            if family in self._mixed:
                self._move(family, keys)
            if self._policy is not None or family not in self._mixed:
                self._apply_to(family, held)
        if not self._reapply:
            self._end_move()

    def _apply_to(self, family: Family, keys: Sequence[bytes]) -> None:
        """Apply the policy to routes of a table."""
        table, not_installed = self._tables[family], self._not_installed[family]
        by_path: dict[Path, list[bytes]] = {}
        for key in keys:
            by_path.setdefault(table[key], []).append(key)
        for path, of_path in by_path.items():
            for accepted, part in self.imported(family, path, of_path):
                if accepted is not None:
                    not_installed.discard(part)
                    self._announce_to_loc_rib(family, accepted, part)
                    continue
                gone = [key for key in part if key not in not_installed]
                if gone:
                    not_installed.insert(gone, True)
                    self._withdraw_from_loc_rib(family, gone)
                if path.rejected is None and not self.accepts_nothing:
                    self._leave_out(family, part)

    def _end_move(self) -> None:
        """Hold the routes of each family in one place from now on."""
        for family in self._mixed:
            if self._policy is None:
                self._not_installed[family].clear()
            else:
                del self._shared[family]
        self._mixed.clear()
