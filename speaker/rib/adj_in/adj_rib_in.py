"""The Adj-RIB-In of one session: every received route, whether it is used or not.

Holds paths as received, before the import policy, and announces to the Loc-RIB those that are
eligible and accepted; so a changed policy applies without a ROUTE-REFRESH (soft reconfiguration
inbound). Holds no object per prefix (`speaker.rib.adj_in.held_routes`).

With ADD-PATH (RFC 7911) the key of a route is the prefix behind its path identifier, as on the wire,
and each identifier is a source of its own for the Loc-RIB.

Routes may be stale: retained while the peer restarts (RFC 4724), or received before the beginning of an
enhanced route refresh (RFC 7313). A stale route is used like any other until it is announced again,
withdrawn or swept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from speaker.errors import Truncated
from speaker.nlri import Family, PathNlri, decode_prefixes
from speaker.rib.adj_in.counted_prefixes import CountedPrefixes
from speaker.rib.adj_in.departed import DepartedRoutes
from speaker.rib.adj_in.held_routes import EMPTY, HeldRoutes
from speaker.rib.adj_in.path_ids import ReceivedPathIds
from speaker.rib.adj_in.reapply import PendingKeys
from speaker.rib.adj_in.shared import SharedAdjRibIn
from speaker.rib.adj_in.stale_mark import StaleMark
from speaker.rib.key_slices import key_slices
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy, changed_prefixes
from speaker.rib.prefix_table import PrefixTable


class AdjRibIn(HeldRoutes):
    """The received routes of one session, and their changes."""

    __slots__ = ("_departed", "_keep", "_loc", "_reapply", "rejected_by_policy")

    def __init__(
        self,
        source: Source,
        policy: CompiledPolicy | None,
        loc_rib: Mapping[Family, LocRib],
        numbers: Iterator[int],
        add_path: frozenset[Family] = frozenset(),
        keep: int | None = None,
    ) -> None:
        """Start empty, with the families of ``loc_rib``.

        ``numbers`` are those of new sources, ``add_path`` the families with path identifiers. A
        policy of None accepts every route unchanged. ``keep`` is the number of routes that are kept
        while the policy accepts nothing; None keeps all.
        """
        super().__init__(source, policy, loc_rib, ReceivedPathIds(source, numbers, add_path))
        self._keep = keep
        self._loc = loc_rib
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
        if self._rejects_all:
            self.rejected_by_policy += len(nlri)
            if self._keep is not None:
                nlri = self._choose_kept(family, nlri)
            if self._marks:
                self._clear_stale(family, nlri)
            self.changes += 1
            self._tables[family].insert(nlri, path)
            return
        if self._marks:
            self._clear_stale(family, nlri)
        self.changes += 1
        self._tables[family].insert(nlri, path)
        if self._policy is None and path.rejected is None:
            not_installed = self._not_installed[family]
            if not_installed:
                not_installed.difference_update(nlri)
            if family in self.path_ids.families:
                self._loc[family].announce(path, [key[4:] for key in nlri])
            else:
                self._loc[family].announce(path, nlri)
        else:
            self._apply_policy(family, path, nlri)

    def _choose_kept(self, family: Family, nlri: Sequence[bytes]) -> Sequence[bytes]:
        """Return the announced keys that are kept, and count the others."""
        table = self._tables[family]
        room = (self._keep or 0) - sum(map(len, self._tables.values()))
        new = [key for key in nlri if key not in table]
        if room >= len(new) and family not in self._counted:
            return nlri
        new = list(dict.fromkeys(new))
        counted = self._counted.get(family)
        if counted is None:
            counted = self._counted[family] = CountedPrefixes()
        beyond = new[max(room, 0) :]
        counted.remove(new[: max(room, 0)])
        counted.add(beyond)
        self.path_ids.forget(family, beyond)
        left_out = set(beyond)
        return [key for key in nlri if key not in left_out]

    def announce_fields(
        self, family: Family, paths: Sequence[Path], fields: Sequence[bytes]
    ) -> int:
        """Announce the prefixes of NLRI fields, each field with its eligible path.

        No field is empty. Returns the number of fields before the first malformed one.
        """
        taken = 0
        shared = self._shared.get(family)
        if shared is not None and not self._marks:
            taken = shared.announce_new(paths, fields, family.afi)
            ineligible = self._tables[family]
            if ineligible and ineligible.discard_fields(fields[:taken], family.afi):
                self.changes += 1
        while taken < len(fields):
            try:
                nlri = decode_prefixes(fields[taken], family.afi)
            except Truncated:
                break
            self.announce(family, paths[taken], nlri)
            taken += 1
        return taken

    def _apply_policy(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Announce to the Loc-RIB what the policy accepts, and withdraw the other routes."""
        policy = self._policy
        not_installed = self._not_installed[family]
        skip = 4 if family in self.path_ids.families else 0
        parts = (
            ((0, nlri),) if policy is None else policy.group_by_matching_lists(family, nlri, skip)
        )
        for lists, keys in parts:
            accepted = path if policy is None else policy.apply(path, family, lists)
            if accepted is None or path.rejected is not None:
                self.rejected_by_policy += len(keys) if accepted is None else 0
                not_installed.update(keys)
                self._withdraw_from_loc_rib(family, keys)
            else:
                not_installed.difference_update(keys)
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
            not_installed.difference_update(nlri)
        if not self._rejects_all:
            self._withdraw_from_loc_rib(family, nlri)

    def attach(
        self, loc_rib: Mapping[Family, LocRib], add_path: frozenset[Family]
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
            self._not_installed[family] = set()
        self._loc = loc_rib
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
        self._not_installed[family] = set()
        self._counted.pop(family, None)
        self.path_ids.clear(family)
        return routes

    # ------------------------------------------------------------------ stale

    def mark_stale(self, family: Family, *, refresh: bool = False) -> None:
        """Mark all held routes of a family as stale; those that are only counted are forgotten.

        ``refresh``: the peer has begun one, by BoRR (RFC 7313).
        """
        self._counted.pop(family, None)
        if not self.held(family):
            return
        marks = self._marks.setdefault(family, [])
        if marks and not marks[-1].swept:
            del marks[-1]
        marks.append(StaleMark(refresh=refresh))

    def end_stale(self, family: Family) -> StaleMark | None:
        """End the time of a family's stale routes: `stale_keys` of the returned mark are to be removed.

        None without stale routes.
        """
        marks = self._marks.get(family)
        if not marks or marks[-1].swept:
            return None
        marks[-1].swept = True
        return marks[-1]

    def stale_keys(
        self, family: Family, mark: StaleMark, size: int, *, contested: bool = False
    ) -> Iterator[list[bytes]]:
        """Iterate over the stale routes of a mark, in steps of ``size`` looked-up keys.

        With ``contested`` those whose prefixes have another path in the Loc-RIB. Routes may change
        between two steps. Ends when the mark is no longer valid, as that of an ended session.
        """
        if contested and not self._loc[family].several:
            return
        skip = 4 if family in self.path_ids.families else 0
        for some in key_slices(self.keys(family), size):
            if mark not in self._marks.get(family, ()):
                return
            keys = self._loc[family].contested(some, skip) if contested else some
            stale = mark.stale(keys) if keys else ()
            # In the order of the table: it must not depend on hashes, so that a recorded run replays.
            yield [key for key in dict.fromkeys(keys) if key in stale and self._holds(family, key)]

    def _holds(self, family: Family, key: bytes) -> bool:
        if key in self._tables[family]:
            return True
        shared = self._shared.get(family)
        return shared is not None and shared.path(key) is not None

    def last_mark(self, family: Family) -> StaleMark | None:
        """Return the mark of a family's stale routes; None without any."""
        marks = self._marks.get(family)
        return marks[-1] if marks else None

    def forget_mark(self, family: Family, mark: StaleMark) -> None:
        """Forget a mark whose stale routes are removed."""
        marks = self._marks.get(family)
        if marks and mark in marks:
            marks.remove(mark)
            if not marks:
                del self._marks[family]

    def replace_stale(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Replace the path of stale routes; they remain stale."""
        marks = self._marks.pop(family, [])
        self.announce(family, path, nlri)
        if marks:
            self._marks[family] = marks

    def _clear_stale(self, family: Family, nlri: Sequence[bytes]) -> None:
        for mark in self._marks.get(family, ()):
            mark.announced(nlri)

    # ------------------------------------------------------------------ policy

    @property
    def keeps_all(self) -> bool:
        """Whether all received routes are kept."""
        return self._keep is None or not self._rejects_all

    def set_keep(self, keep: int | None) -> None:
        """Change the number of kept routes.

        A smaller one applies to the held routes: `reapply` leaves the rest of them out while
        `reapplying` is True. Those that are `not_kept` the caller requests again.
        """
        self._keep = keep
        if self._rejects_all:
            self._reapply.clear()
            self._find_excess()
            self.reapply()

    def _find_excess(self) -> None:
        """Have `reapply` leave out the held routes beyond the number that is kept."""
        if self._keep is None:
            return
        room = self._keep
        for family, table in self._tables.items():
            if len(table) > room:
                self._reapply.add_keys(family, list(islice(table, room, None)))
            room = max(0, room - len(table))

    def _leave_out(self, family: Family, keys: Sequence[bytes]) -> None:
        """Count held routes from now on, and keep them no more, until only the number is held."""
        table, marks = self._tables.get(family, EMPTY), self._marks.get(family)
        excess = sum(map(len, self._tables.values())) - (self._keep or 0)
        gone = [key for key in keys if key in table][: max(0, excess)]
        self.changes += 1
        table.discard(gone)
        self.path_ids.forget(family, gone)
        # Whether the peer still has a stale route is not known.
        counted = marks[-1].fresh_of(gone) if marks else gone
        if counted:
            self._counted.setdefault(family, CountedPrefixes()).add(counted)
        for mark in marks or ():
            mark.gone(gone)

    def forget_counted(self) -> None:
        """Count those routes no more that are not kept: the peer will announce them again."""
        self._counted.clear()

    def set_policy(self, policy: CompiledPolicy | None) -> None:
        """Change the import policy and apply it to held routes (soft reconfiguration inbound).

        `reapply` applies it to the rest of them while `reapplying` is True. To those that are
        `not_kept` it cannot be applied: the caller requests them again. A policy that accepts nothing
        leaves routes out, as `set_keep` does.
        """
        before = self._policy
        if before is None or policy is None:
            self._replace_policy(policy)
            return
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
                not_installed.update(table)
            skip = 4 if family in self.path_ids.families else 0
            self._reapply.add(family, table, only, skip=skip)
        if policy.accepts_nothing:
            self._find_excess()
        self.reapply()

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
            table = self._tables.get(family, EMPTY)
            not_installed = self._not_installed.get(family, set())
            by_path: dict[Path, list[bytes]] = {}
            for key in keys:
                held = table.get(key)
                if held is not None:
                    by_path.setdefault(held, []).append(key)
            for path, of_path in by_path.items():
                for accepted, part in self.imported(family, path, of_path):
                    if accepted is None:
                        gone = [key for key in part if key not in not_installed]
                        not_installed.update(gone)
                        if gone:
                            self._withdraw_from_loc_rib(family, gone)
                    else:
                        not_installed.difference_update(part)
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
            self._not_installed[family] = set()
            self.changes += 1
        marks, self._marks = self._marks, {}
        self._policy = policy
        for family, by_path in held.items():
            self._choose_storage(family)
            for path, keys in by_path.items():
                self.announce(family, path, keys)
        self._marks = marks
        for family, counted in self._counted.items() if self._rejects_all else ():
            table = self._tables[family]
            for mark in marks.get(family, ())[-1:]:
                # Whether the peer still has a stale route is not known.
                before = chain.from_iterable(held[family].values())
                counted.remove(mark.stale([key for key in before if key not in table]))
            for mark in marks.get(family, ()):
                mark.restrict(table)
