"""The Adj-RIB-In of one session: every received route, whether it is used or not.

Holds paths as received, before the import policy, and announces to the Loc-RIB those that are
eligible and accepted; so a changed policy applies without a ROUTE-REFRESH (soft reconfiguration
inbound). Holds no object per prefix: a family is one dictionary from wire octets to shared paths, or
no dictionary at all where the import policy leaves routes unchanged (`speaker.rib.adj_in_shared`).

With ADD-PATH (RFC 7911) the key of a route is the prefix behind its path identifier, as on the wire,
and each identifier is a source of its own for the Loc-RIB.

Routes may be stale: retained while the peer restarts (RFC 4724), or received before the beginning of an
enhanced route refresh (RFC 7313). A stale route is used like any other until it is announced again,
withdrawn or swept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from itertools import chain

from speaker.api import PolicyDecision
from speaker.errors import Truncated
from speaker.nlri import Family, PathNlri, decode_prefixes
from speaker.rib.adj_in_reapply import PendingKeys
from speaker.rib.adj_in_shared import SharedAdjRibIn
from speaker.rib.counted_prefixes import CountedPrefixes
from speaker.rib.key_slices import key_slices
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy, changed_prefixes
from speaker.rib.received_path_ids import ReceivedPathIds


class AdjRibIn:
    """The received routes of one session."""

    __slots__ = (
        "_counted",
        "_keep",
        "_loc",
        "_not_installed",
        "_policy",
        "_reapply",
        "_shared",
        "_stale",
        "_tables",
        "path_ids",
        "rejected_by_policy",
        "source",
    )

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
        self._keep = keep
        self._counted: dict[Family, CountedPrefixes] = {}
        """The routes that are not kept, of families that have any."""
        self.source = source
        self.path_ids = ReceivedPathIds(source, numbers, add_path)
        self._tables: dict[Family, dict[bytes, Path]] = {family: {} for family in loc_rib}
        """Received routes by key. Of families in `_shared` only the ineligible ones."""
        self._policy = policy
        self._loc = loc_rib
        self._not_installed: dict[Family, set[bytes]] = {family: set() for family in loc_rib}
        """Keys that are held but not in the Loc-RIB; empty if the policy rejects everything."""
        self._reapply = PendingKeys()
        """The keys to which a changed policy is still to be applied."""
        self._stale: dict[Family, set[bytes]] = {}
        """The keys of stale routes, for families that have any."""
        self.rejected_by_policy = 0
        """Announced prefixes that the import policy rejected."""
        self._shared: dict[Family, SharedAdjRibIn] = {}
        """The families whose eligible routes are held in the Loc-RIB alone."""
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
        if self._stale:
            self._clear_stale(family, nlri)
        shared = self._shared.get(family)
        if shared is not None:
            ineligible = self._tables[family]
            if path.rejected is not None:
                shared.withdraw(nlri)
                ineligible.update(dict.fromkeys(nlri, path))
                return
            if ineligible:
                for prefix in nlri:
                    ineligible.pop(prefix, None)
            shared.announce(path, nlri)
            return
        if self._rejects_all:
            self.rejected_by_policy += len(nlri)
            if self._keep is not None:
                nlri = self._choose_kept(family, nlri)
            self._tables[family].update(dict.fromkeys(nlri, path))
            return
        self._tables[family].update(dict.fromkeys(nlri, path))
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
        if shared is not None and not self._stale and not self._tables[family]:
            taken = shared.announce_new(paths, fields, family.afi)
        while taken < len(fields):
            try:
                nlri = decode_prefixes(fields[taken], family.afi)
            except Truncated:
                break
            self.announce(family, paths[taken], nlri)
            taken += 1
        return taken

    @property
    def _rejects_all(self) -> bool:
        return self._policy is not None and self._policy.accepts_nothing

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

    def source_of(self, path_id: int) -> Source:
        """Return the source of the paths with a path identifier."""
        return self.path_ids.source_of(path_id)

    def forget_unused_sources(self) -> None:
        """Forget path identifiers without a route; see `ReceivedPathIds.forget_unused_sources`."""
        self.path_ids.forget_unused_sources(self._tables)

    def withdraw(self, family: Family, nlri: Sequence[bytes]) -> None:
        """Withdraw routes by key; unknown ones are ignored."""
        table = self._tables[family]
        counted = self._counted.get(family)
        if counted is not None:
            counted.remove([key for key in nlri if key not in table])
        if family in self.path_ids.families:
            self.path_ids.withdraw(family, nlri, table)
        if table:
            for prefix in nlri:
                table.pop(prefix, None)
        if self._stale:
            self._clear_stale(family, nlri)
        shared = self._shared.get(family)
        if shared is not None:
            shared.withdraw(nlri)
            return
        not_installed = self._not_installed[family]
        if not_installed:
            not_installed.difference_update(nlri)
        if not self._rejects_all:
            self._withdraw_from_loc_rib(family, nlri)

    def attach(self, loc_rib: Mapping[Family, LocRib], add_path: frozenset[Family]) -> None:
        """Continue in a new session of the peer, with its families; the others are cleared.

        So are families with path identifiers in only one of the two sessions: their keys differ.
        """
        for family in self._tables.keys() & (self.path_ids.families ^ add_path):
            self.drop(family)
            self._shared.pop(family, None)
        self.path_ids.set_families(add_path)
        for family in self._tables.keys() - loc_rib.keys():
            self.drop(family)
            del self._tables[family], self._not_installed[family]
            self._shared.pop(family, None)
        for family in loc_rib.keys() - self._tables.keys():
            self._tables[family] = {}
            self._not_installed[family] = set()
        self._loc = loc_rib
        for family in loc_rib:
            if family not in self._shared:
                self._choose_storage(family)

    def clear(self) -> None:
        """Withdraw all routes: the session ended."""
        self._reapply.clear()
        for family in self._tables:
            self.drop(family)

    def drop(self, family: Family) -> None:
        """Withdraw the routes of a family."""
        if family in self._shared:
            self._shared[family].clear()
        elif not self._rejects_all:
            self._withdraw_from_loc_rib(family, list(self._tables[family]))
        self._tables[family] = {}
        self._not_installed[family] = set()
        self._stale.pop(family, None)
        self._counted.pop(family, None)
        self.path_ids.clear(family)

    # ------------------------------------------------------------------ stale

    def mark_stale(self, family: Family) -> None:
        """Mark all held routes of a family as stale; those that are only counted are forgotten."""
        self._counted.pop(family, None)
        if self.received(family):
            self._stale[family] = {key for key, _ in self.items(family)}

    def sweep(self, family: Family) -> Sequence[bytes]:
        """Withdraw the stale routes of a family; return their keys."""
        stale = self._stale.pop(family, None)
        if not stale:
            return ()
        # In the order of the table: it must not depend on hashes, so that a recorded run replays.
        gone = [nlri for nlri, _ in self.items(family) if nlri in stale]
        self.withdraw(family, gone)
        return gone

    def stale(self, family: Family) -> int:
        """Return the number of stale routes."""
        return len(self._stale.get(family, ()))

    def stale_paths(self, family: Family) -> dict[Path, list[bytes]]:
        """Return the keys of the stale routes by path."""
        stale = self._stale.get(family, ())
        groups: dict[Path, list[bytes]] = {}
        for nlri, path in self.items(family):
            if nlri in stale:
                groups.setdefault(path, []).append(nlri)
        return groups

    def replace_stale(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Replace the path of stale routes; they remain stale."""
        stale = self._stale.pop(family, set())
        self.announce(family, path, nlri)
        self._stale[family] = stale

    def _clear_stale(self, family: Family, nlri: Sequence[bytes]) -> None:
        stale = self._stale.get(family)
        if stale is not None:
            stale.difference_update(nlri)
            if not stale:
                del self._stale[family]

    @property
    def not_kept(self) -> int:
        """The number of received routes that are counted and not kept, of all families."""
        return sum(map(len, self._counted.values()))

    @property
    def keeps_all(self) -> bool:
        """Whether all received routes are kept."""
        return self._keep is None or not self._rejects_all

    def set_keep(self, keep: int | None) -> None:
        """Change the number of kept routes, for those that are announced from now on."""
        self._keep = keep

    def forget_counted(self) -> None:
        """Count those routes no more that are not kept: the peer will announce them again."""
        self._counted.clear()

    def set_policy(self, policy: CompiledPolicy | None) -> None:
        """Change the import policy and apply it to held routes (soft reconfiguration inbound).

        `reapply` applies it to the rest of them while `reapplying` is True. To those that are
        `not_kept` it cannot be applied: the caller requests them again.
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
        self.reapply()

    @property
    def reapplying(self) -> bool:
        """Whether a changed policy is still to be applied to some held routes."""
        return bool(self._reapply)

    def reapply(self) -> None:
        """Apply a changed policy to the next slice of the held routes."""
        policy = self._policy
        assert policy is not None  # noqa: S101  otherwise nothing is pending
        for family, keys in self._reapply.take():
            table = self._tables.get(family, {})
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
            self._tables[family] = {}
            self._not_installed[family] = set()
        stale, self._stale = self._stale, {}
        self._policy = policy
        for family, by_path in held.items():
            self._choose_storage(family)
            for path, keys in by_path.items():
                self.announce(family, path, keys)
        self._stale = stale

    @property
    def families(self) -> KeysView[Family]:
        """The families of the session."""
        return self._tables.keys()

    def items(self, family: Family) -> Iterator[tuple[bytes, Path]]:
        """Iterate over the held routes of a family: key, and path as received."""
        if family in self._shared:
            yield from self._shared[family].items()
        yield from self._tables.get(family, {}).items()

    def received(self, family: Family) -> int:
        """Return the number of received routes: held, or counted only."""
        shared = self._shared.get(family)
        held = len(self._tables.get(family, ())) + (0 if shared is None else shared.count)
        return held + self.counted(family)

    def counted(self, family: Family) -> int:
        """Return the number of received routes of a family that are counted and not kept."""
        return len(self._counted.get(family, ()))

    def accepted(self, family: Family) -> int:
        """Return the number of held routes that are in the Loc-RIB."""
        shared = self._shared.get(family)
        if shared is not None:
            return shared.count
        if self._rejects_all or family not in self._tables:
            return 0
        return len(self._tables[family]) - len(self._not_installed[family])

    def by_path(
        self, family: Family, keys: Iterable[bytes]
    ) -> tuple[dict[Path, list[bytes]], list[bytes]]:
        """Group keys by path as received; the second list is the keys that are not held."""
        table = self._tables.get(family, {})
        shared = self._shared.get(family)
        if shared is not None and not table:
            return shared.by_path(keys)
        groups: dict[Path, list[bytes]] = {}
        gone: list[bytes] = []
        for key in keys:
            path = table.get(key)
            if path is None and shared is not None:
                path = shared.path(key)
            if path is None:
                gone.append(key)
            else:
                groups.setdefault(path, []).append(key)
        return groups, gone

    def keys(self, family: Family) -> Iterator[Sequence[bytes]]:
        """Iterate over lists with every key held now; duplicates may be among them.

        Keys that are no longer held may be among them, too. Routes may change between two lists.
        """
        shared = self._shared.get(family)
        lists = () if shared is None else shared.prefix_lists()
        return chain(lists, (list(self._tables.get(family, ())),))

    def decide(self, family: Family, path: Path, nlri: bytes) -> PolicyDecision:
        """Return what the import policy decides about a held route, and by what."""
        if self._policy is None:
            return PolicyDecision(accepted=True)
        return self._policy.decide(path, family, nlri)

    @property
    def accepts_all(self) -> bool:
        """Whether every eligible route is imported unchanged."""
        return self._policy is None

    def imported(
        self, family: Family, path: Path, keys: Sequence[bytes]
    ) -> Iterable[tuple[Path | None, Sequence[bytes]]]:
        """Return routes by their path in the Loc-RIB; None for those that are not imported."""
        policy = self._policy
        if path.rejected is not None or self._rejects_all:
            return ((None, keys),)
        if policy is None:
            return ((path, keys),)
        skip = 4 if family in self.path_ids.families else 0
        return (
            (policy.apply(path, family, lists), part)
            for lists, part in policy.group_by_matching_lists(family, keys, skip)
        )

    def routes(
        self, family: Family, size: int, prefixes: Iterable[bytes] | None = None
    ) -> Iterator[list[tuple[bytes, Path, Path | None]]]:
        """Iterate over the routes: prefix, path as received, and path in the Loc-RIB or None.

        In slices of about ``size`` looked-up keys; a slice may be empty, and routes may change
        between two slices. With ``prefixes`` only over their routes, in their order.
        """
        if prefixes is None:
            shared, table = self._shared.get(family), self._tables.get(family, {})
            eligible = () if shared is None else shared.distinct_prefixes(size)
            others = key_slices((list(table),), size)
            # The log may have prefixes that became ineligible since.
            slices: Iterator[Sequence[bytes]] = chain(
                ([key for key in keys if key not in table] for keys in eligible), others
            )
        else:
            slices = key_slices((self._keys_of(family, nlri) for nlri in prefixes), size)
        for keys in slices:
            yield list(self._routes_of(family, keys))

    def _keys_of(self, family: Family, nlri: bytes) -> Sequence[bytes]:
        """Return the keys that a prefix may have."""
        return self.path_ids.keys_of(family, nlri) if family in self.path_ids.families else (nlri,)

    def _routes_of(
        self, family: Family, keys: Iterable[bytes]
    ) -> Iterator[tuple[bytes, Path, Path | None]]:
        """Iterate over the routes that some keys have now."""
        table = self._tables.get(family, {})
        shared = self._shared.get(family)
        not_installed = self._not_installed.get(family, set())
        skip = 4 if family in self.path_ids.families else 0
        policy = self._policy
        for key in keys:
            path = table.get(key)
            if path is None and shared is not None:
                path = shared.path(key)
            if path is None:
                continue
            used: Path | None = path
            if path.rejected is not None or self._rejects_all or key in not_installed:
                used = None
            elif policy is not None:
                used = policy.apply(path, family, policy.matching_lists(family, key[skip:]))
            yield key[skip:], path, used
