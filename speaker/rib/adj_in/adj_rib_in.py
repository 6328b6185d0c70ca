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
from itertools import chain, islice
from typing import Final

from speaker.errors import Truncated
from speaker.nlri import Family, LazyNlriField, PathNlri
from speaker.rib.adj_in.counted_prefixes import counted_prefixes
from speaker.rib.adj_in.departed import DepartedRoutes
from speaker.rib.adj_in.held_routes import EMPTY
from speaker.rib.adj_in.marked_routes import MarkedRoutes
from speaker.rib.adj_in.path_ids import ReceivedPathIds
from speaker.rib.adj_in.reapply import PendingKeys
from speaker.rib.adj_in.shared import SharedAdjRibIn
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy, accepts_more, changed_prefixes
from speaker.rib.prefix_table import PrefixTable

BATCH_KEYS: Final = 4096
"""Keys of a table that are copied at a time."""


class AdjRibIn(MarkedRoutes):
    """The received routes of one session, and their changes."""

    __slots__ = ("_departed", "_keep", "_reapply", "_refreshable", "rejected_by_policy")

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
        super().__init__(source, policy, loc_rib, ReceivedPathIds(source, numbers, add_path))
        self._keep = keep
        self._refreshable = refreshable
        self._reapply = PendingKeys()
        """The keys to which a changed policy is still to be applied."""
        self._departed: list[DepartedRoutes] = []
        """The families that the present session cleared, while their routes are being removed."""
        self.rejected_by_policy = 0
        """Announced prefixes that the import policy rejected."""
        for family in loc_rib:
            self._choose_storage(family)

    def _choose_storage(self, family: Family) -> None:
        """Decide where the routes of an empty family will be held."""
        self._shared.pop(family, None)
        if self._policy is None and family not in self.path_ids.families:
            self._shared[family] = SharedAdjRibIn(self._loc[family], self.source)

    def admit(self, family: Family, items: Sequence[PathNlri]) -> list[PathNlri]:
        """Return the paths that may be announced: at most `MAX_PATHS` of a prefix."""
        return self.path_ids.admit(family, items, self._tables[family])

    def announce(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Announce routes: keys with a path, which replaces the path before.

        The caller must not change the list.
        """
        shared = self._shared.get(family)
        if shared is not None:
            if self._marks:
                self._clear_stale(family, nlri)
            ineligible = self._tables[family]
            if ineligible or path.rejected is not None:
                self.changes += 1
            if path.rejected is not None:
                shared.withdraw(nlri)
                ineligible.insert(nlri, path)
                return
            if ineligible:
                ineligible.discard(nlri)
            shared.announce(path, nlri)
            return
        self.changes += 1
        if self._rejects_all:
            self.rejected_by_policy += len(nlri)
            self._hold(family, path, self._choose_kept(family, nlri))
        elif self._policy is None and path.rejected is None:
            self._hold(family, path, nlri)
            not_installed = self._not_installed[family]
            if not_installed:
                not_installed.discard(nlri)
            self._announce_to_loc_rib(family, path, nlri)
        else:
            self._apply_policy(family, path, nlri)

    def _hold(self, family: Family, path: Path, keys: Sequence[bytes]) -> None:
        if self._marks:
            self._clear_stale(family, keys)
        self._tables[family].insert(keys, path)

    @property
    def _kept(self) -> int | None:
        """The number of kept routes that the policy rejects; None keeps all."""
        return self._keep if self._refreshable or self._rejects_all else None

    def _room(self) -> int:
        """Return how many more rejected routes are kept; negative where too many are held."""
        unused = self._tables if self._rejects_all else self._not_installed
        return (self._kept or 0) - sum(map(len, unused.values()))

    def _choose_kept(self, family: Family, nlri: Sequence[bytes]) -> Sequence[bytes]:
        """Return the keys of rejected routes that are kept, and count the others."""
        if self._kept is None:
            return nlri
        table, counted = self._tables[family], self._counted.get(family)
        if counted is None:
            counted = self._counted[family] = counted_prefixes()
        room = self._room()
        if room <= 0 and table.isdisjoint(nlri):
            counted.add(nlri)
            self.path_ids.forget(family, nlri)
            return ()
        unused = table if self._rejects_all else self._not_installed[family]
        new = list(dict.fromkeys(key for key in nlri if key not in unused))
        beyond = new[max(room, 0) :]
        counted.remove(new[: max(room, 0)])
        if room < 0:
            # Some were held as ineligible, whatever their number.
            beyond += list(dict.fromkeys(key for key in nlri if key in unused))[:-room]
            self._not_installed[family].discard(beyond)
        if not beyond:
            return nlri
        counted.add(beyond)
        self._give_up(family, beyond)
        left_out = set(beyond)
        return [key for key in nlri if key not in left_out]

    def _give_up(self, family: Family, keys: Sequence[bytes]) -> None:
        """Hold routes no more, which are not in the Loc-RIB."""
        self._tables[family].discard(keys)
        self.path_ids.forget(family, keys)
        for mark in self._marks.get(family, ()):
            mark.gone(keys)

    def announce_fields(
        self, family: Family, paths: Sequence[Path], fields: Sequence[bytes]
    ) -> int:
        """Announce the prefixes of NLRI fields, each field with its eligible path.

        No field is empty. Returns the number of fields before the first malformed one.
        """
        taken, afi = 0, family.afi
        parts = [LazyNlriField(field, afi) for field in fields]
        shared = self._shared.get(family)
        if shared is not None and not self._marks:
            taken = shared.announce_new(paths, parts)
            ineligible = self._tables[family]
            if ineligible and ineligible.discard_fields(parts[:taken]):
                self.changes += 1
        while taken < len(parts):
            try:
                nlri = parts[taken].decoded()
            except Truncated:
                break
            self.announce(family, paths[taken], nlri)
            taken += 1
        return taken

    def _apply_policy(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Announce to the Loc-RIB what the policy accepts, and withdraw the other routes."""
        policy = self._policy
        table, not_installed = self._tables[family], self._not_installed[family]
        skip = 4 if family in self.path_ids.families else 0
        parts = (
            ((0, nlri),) if policy is None else policy.group_by_matching_lists(family, nlri, skip)
        )
        for lists, keys in parts:
            accepted = path if policy is None else policy.apply(path, family, lists)
            if accepted is None or path.rejected is not None:
                if not table.isdisjoint(keys):
                    self._withdraw_from_loc_rib(family, keys)
                kept = keys
                if accepted is None:
                    self.rejected_by_policy += len(keys)
                    kept = self._choose_kept(family, keys)
                elif family in self._counted:
                    self._counted[family].remove(keys)
                not_installed.insert(kept, True)
                self._hold(family, path, kept)
            else:
                not_installed.discard(keys)
                if family in self._counted:
                    self._counted[family].remove(keys)
                self._hold(family, path, keys)
                self._announce_to_loc_rib(family, accepted, keys)

    def _announce_to_loc_rib(self, family: Family, path: Path, keys: Sequence[bytes]) -> None:
        skip = 4 if family in self.path_ids.families else 0
        self._loc[family].announce(path, [key[skip:] for key in keys] if skip else keys)

    def _withdraw_from_loc_rib(self, family: Family, keys: Sequence[bytes]) -> None:
        if family not in self.path_ids.families:
            self._loc[family].withdraw(self.source, keys)
            return
        for source, prefixes in self.path_ids.by_source(keys):
            self._loc[family].withdraw(source, prefixes)

    def forget_unused_sources(self) -> None:
        """Forget path identifiers without a route; see `ReceivedPathIds.forget_unused_sources`."""
        self.path_ids.forget_unused_sources(self._tables)

    def withdraw(self, family: Family, nlri: Sequence[bytes]) -> None:
        """Withdraw routes by key; unknown ones are ignored."""
        table = self._tables[family]
        self.changes += 1
        counted = self._counted.get(family)
        if counted is not None:
            counted.remove([key for key in nlri if key not in table])
        if family in self.path_ids.families:
            self.path_ids.withdraw(family, nlri, table)
        if table:
            table.discard(nlri)
        if self._marks:
            for mark in self._marks.get(family, ()):
                mark.gone(nlri)
        shared = self._shared.get(family)
        if shared is not None:
            shared.withdraw(nlri)
            return
        not_installed = self._not_installed[family]
        if not_installed:
            not_installed.discard(nlri)
        if not self._rejects_all:
            self._withdraw_from_loc_rib(family, nlri)

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
        routes = DepartedRoutes(
            family,
            self.source,
            dict(self.path_ids.sources) if family in self.path_ids.families else None,
            self._loc[family],
            self._tables[family],
            self._shared.pop(family, None),
            None if self._rejects_all else self._not_installed[family],
            self._marks.pop(family, []),
        )
        self.changes += 1
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

    @property
    def accepts_nothing(self) -> bool:
        """Whether the policy rejects every route."""
        return self._rejects_all

    def set_keep(self, keep: int | None) -> None:
        """Change the number of kept routes.

        A smaller one applies to the held routes: `reapply` drops the rest of them while
        `reapplying` is True. The caller requests routes again that are `not_kept`.
        """
        self._keep = keep
        if self._rejects_all:
            self._reapply.clear()
            self._find_excess()
            self.reapply()
        elif self._policy is not None:
            for family, table in self._tables.items():
                self._reapply.add(family, table, self._revision, None, skip=0)
            self.reapply()

    def _find_excess(self) -> None:
        """Have `reapply` drop the held routes beyond the number that is kept."""
        if self._keep is None:
            return
        room = self._keep
        for family, table in self._tables.items():
            if len(table) > room:
                self._reapply.add_beyond(family, table, self._revision, room)
            room = max(0, room - len(table))

    def _leave_out(self, family: Family, keys: Sequence[bytes]) -> None:
        """Count rejected routes from now on, and keep them no more, until only the number is held."""
        excess = 0 if self._kept is None else -self._room()
        if excess <= 0:
            return
        table, marks = self._tables.get(family, EMPTY), self._marks.get(family)
        gone = [key for key in keys if key in table][:excess]
        if not gone:
            return  # of a family, perhaps, that the present session does not have
        self.changes += 1
        # Whether the peer still has a stale route is not known.
        counted = marks[-1].fresh_of(gone) if marks else gone
        if counted:
            self._counted.setdefault(family, counted_prefixes()).add(counted)
        self._not_installed[family].discard(gone)
        self._give_up(family, gone)

    def forget_counted(self) -> None:
        """Count those routes no more that are not kept: the peer will announce them again."""
        self._counted.clear()

    def set_policy(self, policy: CompiledPolicy | None) -> bool:
        """Change the import policy and apply it to held routes (soft reconfiguration inbound).

        `reapply` applies it to the rest of them while `reapplying` is True. To routes that are
        `not_kept` it cannot be applied. A policy that accepts nothing drops routes, as `set_keep`
        does. Returns whether the policy may accept a route that was rejected before: then the caller
        requests the routes that are `not_kept`.
        """
        before = self._policy
        if before is None or policy is None:
            self._replace_policy(policy)
            return policy is None
        # During a change the Loc-RIB is that of neither policy.
        only = None if self._reapply else changed_prefixes(before.policy, policy.policy)
        self._reapply.clear()
        self._policy = policy
        for family, table in self._tables.items():
            not_installed = self._not_installed[family]
            if policy.accepts_nothing:
                if not before.accepts_nothing:
                    installed = [key for key in table if key not in not_installed]
                    self._withdraw_from_loc_rib(family, installed)
                    not_installed.clear()
                continue
            if before.accepts_nothing:
                keys = iter(table)
                while some := list(islice(keys, BATCH_KEYS)):
                    not_installed.insert(some, True)
            skip = 4 if family in self.path_ids.families else 0
            self._reapply.add(family, table, self._revision, only, skip=skip)
        if policy.accepts_nothing:
            self._find_excess()
        self.reapply()
        return not policy.accepts_nothing and accepts_more(before.policy, policy.policy)

    @property
    def reapplying(self) -> bool:
        """Whether a changed policy is still to be applied to some held routes."""
        return bool(self._reapply)

    def reapply(self) -> None:
        """Apply a changed policy to the next slice of the held routes, or leave some of them out."""
        policy = self._policy
        assert policy is not None  # noqa: S101  otherwise nothing is pending
        for family, keys in self._reapply.take():
            if policy.accepts_nothing:
                self._leave_out(family, keys)
                continue
            if family not in self._tables:
                continue  # the present session does not have it
            table, not_installed = self._tables[family], self._not_installed[family]
            by_path: dict[Path, list[bytes]] = {}
            for key in keys:
                held = table.get(key)
                if held is not None:
                    by_path.setdefault(held, []).append(key)
            for path, of_path in by_path.items():
                for accepted, part in self.imported(family, path, of_path):
                    if accepted is None:
                        gone = [key for key in part if key not in not_installed]
                        not_installed.insert(gone, True)
                        if gone:
                            self._withdraw_from_loc_rib(family, gone)
                        if path.rejected is None:
                            self._leave_out(family, part)
                    else:
                        not_installed.discard(part)
                        self._announce_to_loc_rib(family, accepted, part)

    def _replace_policy(self, policy: CompiledPolicy | None) -> None:
        """Change from or to a policy of None: routes are held elsewhere then."""
        self._reapply.clear()
        held: dict[Family, dict[Path, list[bytes]]] = {}
        for family, table in self._tables.items():
            by_path = held[family] = {}
            for key, path in self.items(family):
                by_path.setdefault(path, []).append(key)
            if family in self._shared:
                self._shared[family].clear()
            elif not self._rejects_all:
                self._withdraw_from_loc_rib(family, list(table))
            self._tables[family] = PrefixTable()
            self._not_installed[family] = PrefixTable()
            self.changes += 1
        marks, self._marks = self._marks, {}
        self._policy = policy
        for family, by_path in held.items():
            self._choose_storage(family)
            for path, keys in by_path.items():
                self.announce(family, path, keys)
        self._marks = marks
        for family, counted in self._counted.items() if policy is not None else ():
            table = self._tables[family]
            for mark in marks.get(family, ())[-1:]:
                # Whether the peer still has a stale route is not known.
                before = chain.from_iterable(held[family].values())
                counted.remove(mark.stale([key for key in before if key not in table]))
            for mark in marks.get(family, ()):
                mark.restrict(table)
