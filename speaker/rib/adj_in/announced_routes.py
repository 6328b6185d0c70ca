"""The routes that a peer announces: held, counted, and given to the Loc-RIB as the policy decides.

While the import policy changes from or to none, routes of a family are held in two places: in
`SharedAdjRibIn` and in a table. A change of such a route moves it first to where it belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from speaker.errors import Truncated
from speaker.nlri import Family, NlriFields, PathNlri
from speaker.rib.adj_in.counted_prefixes import counted_prefixes
from speaker.rib.adj_in.held_routes import EMPTY
from speaker.rib.adj_in.marked_routes import MarkedRoutes
from speaker.rib.adj_in.path_ids import ReceivedPathIds
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy


class AnnouncedRoutes(MarkedRoutes):
    """The received routes of one session, and what its messages change."""

    __slots__ = ("_keep", "_refreshable", "rejected_by_policy")

    def __init__(
        self,
        source: Source,
        policy: CompiledPolicy | None,
        loc_rib: Mapping[Family, LocRib],
        numbers: Iterator[int],
        add_path: frozenset[Family],
        keep: int | None,
        *,
        refreshable: bool,
    ) -> None:
        """See `speaker.rib.adj_in.AdjRibIn`."""
        super().__init__(source, policy, loc_rib, ReceivedPathIds(source, numbers, add_path))
        self._keep = keep
        self._refreshable = refreshable
        self.rejected_by_policy = 0
        """Announced prefixes that the import policy rejected."""

    def admit(self, family: Family, items: Sequence[PathNlri]) -> list[PathNlri]:
        """Return the paths that may be announced: at most `MAX_PATHS` of a prefix."""
        return self.path_ids.admit(family, items, self._tables[family])

    def announce(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Announce routes: keys with a path, which replaces the path before.

        The caller must not change the list.
        """
        if family in self._mixed:
            self._move(family, nlri)
        shared = self._shared.get(family)
        if shared is None or self._policy is not None:
            self.changes += 1
            self._apply_policy(family, path, nlri)
            return
        if self._marks:
            self._clear_stale(family, nlri)
        ineligible = self._tables[family]
        if ineligible or path.rejected is not None:
            self.changes += 1
        if path.rejected is not None:
            shared.withdraw(nlri)
            ineligible.insert(nlri, path)
            if family in self._mixed:
                self._not_installed[family].insert(nlri, True)
            return
        if ineligible:
            ineligible.discard(nlri)
            self._not_installed[family].discard(nlri)
        shared.announce(path, nlri)

    def announce_fields(
        self, family: Family, paths: Sequence[Path], fields: Sequence[bytes]
    ) -> int:
        """Announce the prefixes of NLRI fields, each field with its eligible path.

        No field is empty. Returns the number of fields before the first malformed one.
        """
        taken, run = 0, NlriFields(fields, family.afi)
        shared = self._shared.get(family)
        if shared is not None and not self._marks and family not in self._mixed:
            taken = shared.announce_new(paths, run)
            ineligible = self._tables[family]
            if ineligible and ineligible.discard_fields(run.part(0, taken)):
                self.changes += 1
        while taken < len(fields):
            try:
                nlri = run.prefixes(taken)
            except Truncated:
                break
            self.announce(family, paths[taken], nlri)
            taken += 1
        return taken

    def withdraw(self, family: Family, nlri: Sequence[bytes]) -> None:
        """Withdraw routes by key; unknown ones are ignored."""
        if family in self._mixed:
            self._move(family, nlri)
        table, not_installed = self._tables[family], self._not_installed[family]
        has_installed = self._has_installed(family)
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
        if not_installed:
            not_installed.discard(nlri)
        shared = self._shared.get(family)
        if shared is not None and self._policy is None:
            shared.withdraw(nlri)
        elif has_installed:
            self._withdraw_from_loc_rib(family, nlri)

    def _apply_policy(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Announce to the Loc-RIB what the policy accepts, and withdraw the other routes."""
        policy = self._policy
        table, not_installed = self._tables[family], self._not_installed[family]
        skip = 4 if family in self.path_ids.families else 0
        parts: Iterable[tuple[int, Sequence[bytes]]] = ((0, nlri),)
        if policy is not None and not policy.accepts_nothing:
            parts = policy.group_by_matching_lists(family, nlri, skip)
        for lists, keys in parts:
            accepted = path if policy is None else policy.apply(path, family, lists)
            if accepted is None or path.rejected is not None:
                if self._has_installed(family) and not table.isdisjoint(keys):
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

    def _hold(self, family: Family, path: Path, keys: Sequence[bytes]) -> None:
        if self._marks:
            self._clear_stale(family, keys)
        self._tables[family].insert(keys, path)

    def _announce_to_loc_rib(self, family: Family, path: Path, keys: Sequence[bytes]) -> None:
        skip = 4 if family in self.path_ids.families else 0
        self._loc[family].announce(path, [key[skip:] for key in keys] if skip else keys)

    def _withdraw_from_loc_rib(self, family: Family, keys: Sequence[bytes]) -> None:
        if family not in self.path_ids.families:
            self._loc[family].withdraw(self.source, keys)
            return
        for source, prefixes in self.path_ids.by_source(keys):
            self._loc[family].withdraw(source, prefixes)

    # ----------------------------------------------------- routes that are not used

    @property
    def _kept(self) -> int | None:
        """The number of kept routes that the policy rejects; None keeps all."""
        return self._keep if self._refreshable or self.accepts_nothing else None

    def _room(self) -> int:
        """Return how many more rejected routes are kept; negative where too many are held."""
        return (self._kept or 0) - sum(map(len, self._not_installed.values()))

    def _choose_kept(self, family: Family, nlri: Sequence[bytes]) -> Sequence[bytes]:
        """Return the keys of rejected routes that are kept, and count the others."""
        if self._kept is None:
            return nlri
        counted = self._counted.get(family)
        if counted is None:
            counted = self._counted[family] = counted_prefixes()
        room = self._room()
        if room <= 0 and self._tables[family].isdisjoint(nlri):
            counted.add(nlri)
            self.path_ids.forget(family, nlri)
            return ()
        unused = self._not_installed[family]
        new = list(dict.fromkeys(key for key in nlri if key not in unused))
        beyond = new[max(room, 0) :]
        counted.remove(new[: max(room, 0)])
        if room < 0:
            # Some were held as ineligible, whatever their number.
            beyond += list(dict.fromkeys(key for key in nlri if key in unused))[:-room]
            unused.discard(beyond)
        if not beyond:
            return nlri
        counted.add(beyond)
        self._give_up(family, beyond)
        left_out = set(beyond)
        return [key for key in nlri if key not in left_out]

    def _give_up(self, family: Family, keys: Sequence[bytes]) -> None:
        """Remove routes that are not in the Loc-RIB from the Adj-RIB-In."""
        self._tables[family].discard(keys)
        self.path_ids.forget(family, keys)
        for mark in self._marks.get(family, ()):
            mark.gone(keys)

    def _leave_out(self, family: Family, keys: Sequence[bytes]) -> None:
        """Count rejected routes from now on, and keep them no more, until only the number is held."""
        excess = 0 if self._kept is None else -self._room()
        if excess <= 0:
            return
        table, marks = self._tables.get(family, EMPTY), self._marks.get(family)
        gone = [key for key in keys if key in table][-excess:]
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

    # --------------------------------------------- routes that are held in two places

    def _move(self, family: Family, keys: Sequence[bytes]) -> None:
        """Hold routes where they belong under the present policy, which is applied to them."""
        table = self._tables[family]
        if self._policy is None:
            self._move_to_loc_rib(family, dict.fromkeys(key for key in keys if key in table))
        else:
            self._move_to_table(family, dict.fromkeys(key for key in keys if key not in table))

    def _move_to_loc_rib(self, family: Family, keys: Iterable[bytes]) -> None:
        """Hold eligible routes of the table in the Loc-RIB alone, unchanged."""
        table, shared = self._tables[family], self._shared[family]
        for path, part in self.by_path(family, keys)[0].items():
            if path.rejected is None:
                table.discard(part)
                self._not_installed[family].discard(part)
                shared.adopt(path, part)
        self.changes += 1

    def _move_to_table(self, family: Family, keys: Iterable[bytes]) -> None:
        """Hold routes of the Loc-RIB in the table, and apply the policy to them."""
        shared = self._shared[family]
        by_path, _ = shared.by_path(keys)
        for path, of_path in by_path.items():
            shared.release(len(of_path))
            self._moved += len(of_path)
            for accepted, part in self.imported(family, path, of_path):
                self._tables[family].insert(part, path)
                if accepted is None:
                    self._not_installed[family].insert(part, True)
                    self._loc[family].withdraw(self.source, part)
                    self._leave_out(family, part)
                elif accepted is not path:
                    self._loc[family].announce(accepted, part)
        self.changes += 1
