"""The Adj-RIB-In of one session: what the peer says, all of it, whether we use it or not.

Holds received paths before policy, and passes on to the Loc-RIB those that are eligible and
accepted. A change of the import rule is applied to what is held, without asking the peer again. It
must never keep an object per prefix: a family is one dictionary from wire bytes to shared paths, and
where there is no import rule only what is not eligible is in it: the rest is held in the Loc-RIB
alone (`speaker.rib.adj_in_shared`).

With ADD-PATH (RFC 7911) the key of a route has its path identifier in front, as on the wire, and
each identifier is a source of its own for the Loc-RIB.

Routes may be stale: held from before a restart of the peer (RFC 4724), or from before it began to
say all again (RFC 7313). A stale route is used like any other until it is said again, withdrawn or
swept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from typing import Final

from speaker.errors import Truncated
from speaker.nlri import Family, PathNlri, decode_prefixes
from speaker.rib.adj_in_shared import SharedAdjRibIn
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy

MAX_PATHS: Final = 64
"""How many paths of one prefix are taken from a peer (RFC 7911): each costs all the others time."""


class AdjRibIn:
    """One session's received routes."""

    __slots__ = (
        "_loc",
        "_not_installed",
        "_path_id_sources",
        "_paths_per_prefix",
        "_policy",
        "_shared",
        "_source_numbers",
        "_stale",
        "_tables",
        "add_path",
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
    ) -> None:
        """Begin empty; ``numbers`` are those that new sources get."""
        self.source = source
        self.add_path = add_path
        self._source_numbers = numbers
        self._path_id_sources: dict[bytes, Source] = {}
        self._tables: dict[Family, dict[bytes, Path]] = {family: {} for family in loc_rib}
        self._policy = policy
        self._loc = loc_rib
        self._not_installed: dict[Family, set[bytes]] = {family: set() for family in loc_rib}
        """Prefixes that are held but are not in the Loc-RIB; unless nothing is accepted at all."""
        self._stale: dict[Family, set[bytes]] = {}
        """Only families that have stale routes."""
        self._paths_per_prefix: dict[Family, dict[bytes, int]] = {family: {} for family in add_path}
        """How many paths of each prefix are held, where a prefix may have several."""
        self.rejected_by_policy = 0
        """How many announcements of a prefix the import policy has refused."""
        self._shared: dict[Family, SharedAdjRibIn] = {}
        """What is held of families that need no dictionary of their own for it."""
        for family in loc_rib:
            self._choose_storage(family)

    def _choose_storage(self, family: Family) -> None:
        """Decide how a family of which nothing is held will be."""
        self._shared.pop(family, None)
        if self._policy is None and family not in self.add_path:
            self._shared[family] = SharedAdjRibIn(self._loc[family], self.source)

    def admit(self, family: Family, items: Sequence[PathNlri]) -> list[PathNlri]:
        """Return those of the paths that may be announced next: no prefix has more than `MAX_PATHS`.

        Whoever gets fewer back has a peer that says too much; what is left out is not held at all.
        """
        table, held = self._tables[family], self._paths_per_prefix[family]
        admitted = []
        for path_id, nlri in dict.fromkeys(items):
            if path_id.to_bytes(4, "big") + nlri not in table:
                count = held.get(nlri, 0)
                if count >= MAX_PATHS:
                    continue
                held[nlri] = count + 1
            admitted.append((path_id, nlri))
        return admitted

    def announce(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Take in prefixes with a path, in place of what the peer said of them before.

        The caller leaves the list alone from here.
        """
        if self._stale:
            self._clear_stale(family, nlri)
        shared = self._shared.get(family)
        if shared is not None:
            refused = self._tables[family]
            if path.rejected is not None:
                shared.withdraw(nlri)
                refused.update(dict.fromkeys(nlri, path))
                return
            if refused:
                for prefix in nlri:
                    refused.pop(prefix, None)
            shared.announce(path, nlri)
            return
        self._tables[family].update(dict.fromkeys(nlri, path))
        if self._policy is None and path.rejected is None:
            unused = self._not_installed[family]
            if unused:
                unused.difference_update(nlri)
            if family in self.add_path:
                self._loc[family].announce(path, [key[4:] for key in nlri])
            else:
                self._loc[family].announce(path, nlri)
        elif not self._rejects_all:
            self._apply_policy(family, path, nlri)
        else:
            self.rejected_by_policy += len(nlri)

    def announce_fields(
        self, family: Family, paths: Sequence[Path], fields: Sequence[bytes]
    ) -> int:
        """Take in NLRI fields, each with a path that may be used, in place of what was said before.

        None of them is empty. Returns how many: the next one is no field of prefixes.
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
        policy = self._policy
        unused = self._not_installed[family]
        skip = 4 if family in self.add_path else 0
        parts = (
            ((0, nlri),) if policy is None else policy.group_by_matching_lists(family, nlri, skip)
        )
        for lists, keys in parts:
            accepted = path if policy is None else policy.apply(path, family, lists)
            if accepted is None or path.rejected is not None:
                self.rejected_by_policy += len(keys) if accepted is None else 0
                unused.update(keys)
                self._withdraw_from_loc_rib(family, keys)
            else:
                unused.difference_update(keys)
                used = [key[skip:] for key in keys] if skip else keys
                self._loc[family].announce(accepted, used)

    def _withdraw_from_loc_rib(self, family: Family, nlri: Sequence[bytes]) -> None:
        """Withdraw from the Loc-RIB."""
        if family not in self.add_path:
            self._loc[family].withdraw(self.source, nlri)
            return
        by_id: dict[bytes, list[bytes]] = {}
        for key in nlri:
            by_id.setdefault(key[:4], []).append(key[4:])
        for path_id, prefixes in by_id.items():
            if path_id in self._path_id_sources:
                self._loc[family].withdraw(self._path_id_sources[path_id], prefixes)

    def source_of(self, path_id: int) -> Source:
        """Return the source of the paths with an identifier of the peer's."""
        key = path_id.to_bytes(4, "big")
        known = self._path_id_sources.get(key)
        if known is None:
            known = self._path_id_sources[key] = self.source.with_path_id(
                path_id, next(self._source_numbers)
            )
        return known

    def forget_unused_sources(self) -> None:
        """Forget path identifiers that no route has: a peer can name four thousand million.

        Whoever remembers paths with them has to forget these, too.
        """
        used = {key[:4] for family in self.add_path for key in self._tables.get(family, ())}
        self._path_id_sources = {
            key: part for key, part in self._path_id_sources.items() if key in used
        }

    def withdraw(self, family: Family, nlri: Sequence[bytes]) -> None:
        """Forget prefixes; unknown ones are passed over."""
        table = self._tables[family]
        if family in self.add_path:
            self._forget_path_ids(family, nlri)
        if table:
            for prefix in nlri:
                table.pop(prefix, None)
        if self._stale:
            self._clear_stale(family, nlri)
        shared = self._shared.get(family)
        if shared is not None:
            shared.withdraw(nlri)
            return
        unused = self._not_installed[family]
        if unused:
            unused.difference_update(nlri)
        if not self._rejects_all:
            self._withdraw_from_loc_rib(family, nlri)

    def _forget_path_ids(self, family: Family, keys: Sequence[bytes]) -> None:
        table, held = self._tables[family], self._paths_per_prefix[family]
        for key in dict.fromkeys(keys):
            if key in table:
                prefix = key[4:]
                if held[prefix] == 1:
                    del held[prefix]
                else:
                    held[prefix] -= 1

    def attach(self, loc_rib: Mapping[Family, LocRib], add_path: frozenset[Family]) -> None:
        """Go on in another session, with its families; those that it has not are forgotten.

        So are those that have path identifiers in one of the sessions only: the keys are others.
        """
        for family in self._tables.keys() & (self.add_path ^ add_path):
            self.drop(family)
            self._shared.pop(family, None)
        self.add_path = add_path
        self._paths_per_prefix = {
            family: self._paths_per_prefix.get(family, {}) for family in add_path
        }
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
        """Forget everything: the session is over."""
        for family in self._tables:
            self.drop(family)

    def drop(self, family: Family) -> None:
        """Forget a family's routes."""
        if family in self._shared:
            self._shared[family].clear()
        elif not self._rejects_all:
            self._withdraw_from_loc_rib(family, list(self._tables[family]))
        self._tables[family] = {}
        self._not_installed[family] = set()
        self._stale.pop(family, None)
        if family in self._paths_per_prefix:
            self._paths_per_prefix[family] = {}

    # ------------------------------------------------------------------ stale

    def mark_stale(self, family: Family) -> None:
        """Take everything that is held as said in an earlier life of the peer."""
        if self.received(family):
            self._stale[family] = {key for key, _ in self.items(family)}

    def sweep(self, family: Family) -> Sequence[bytes]:
        """Forget the routes that are stale, and return them."""
        stale = self._stale.pop(family, None)
        if not stale:
            return ()
        # In the table's order, which is that of no hash: a recorded run can be played again.
        gone = [nlri for nlri, _ in self.items(family) if nlri in stale]
        self.withdraw(family, gone)
        return gone

    def stale(self, family: Family) -> int:
        """Return how many prefixes are stale."""
        return len(self._stale.get(family, ()))

    def stale_paths(self, family: Family) -> dict[Path, list[bytes]]:
        """Return the stale prefixes by their path."""
        stale = self._stale.get(family, ())
        groups: dict[Path, list[bytes]] = {}
        for nlri, path in self.items(family):
            if nlri in stale:
                groups.setdefault(path, []).append(nlri)
        return groups

    def replace_stale(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        """Give stale prefixes another path; they stay stale."""
        stale = self._stale.pop(family, set())
        self.announce(family, path, nlri)
        self._stale[family] = stale

    def _clear_stale(self, family: Family, nlri: Sequence[bytes]) -> None:
        stale = self._stale.get(family)
        if stale is not None:
            stale.difference_update(nlri)
            if not stale:
                del self._stale[family]

    def set_policy(self, policy: CompiledPolicy | None) -> None:
        """Change the import rule and apply it to what is held (soft reconfiguration inbound)."""
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
        """The families of which anything may be held."""
        return self._tables.keys()

    def items(self, family: Family) -> Iterator[tuple[bytes, Path]]:
        """Iterate over all that is held of a family: keys, and paths as they were received."""
        if family in self._shared:
            yield from self._shared[family].items()
        yield from self._tables.get(family, {}).items()

    def received(self, family: Family) -> int:
        """Return how many prefixes are held."""
        shared = self._shared.get(family)
        return len(self._tables.get(family, ())) + (0 if shared is None else shared.count)

    def accepted(self, family: Family) -> int:
        """Return how many of them are in the Loc-RIB."""
        shared = self._shared.get(family)
        if shared is not None:
            return shared.count
        if self._rejects_all or family not in self._tables:
            return 0
        return len(self._tables[family]) - len(self._not_installed[family])

    def by_path(
        self, family: Family, keys: Iterable[bytes]
    ) -> tuple[dict[Path, list[bytes]], list[bytes]]:
        """Group keys of routes by the path that is held now; those that are not held come last."""
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

    def keys(self, family: Family) -> list[Sequence[bytes]]:
        """Return lists of the keys that are held, as they are now, at little cost.

        A key may be there twice, or not be held any more.
        """
        shared = self._shared.get(family)
        lists = [] if shared is None else shared.prefix_lists()
        table = self._tables.get(family)
        return [*lists, list(table)] if table else lists

    @property
    def accepts_all(self) -> bool:
        """Whether every route is imported as it is, unless it is rejected for itself."""
        return self._policy is None

    def imported(
        self, family: Family, path: Path, keys: Sequence[bytes]
    ) -> Iterable[tuple[Path | None, Sequence[bytes]]]:
        """Return what becomes of routes with a path: the path in the Loc-RIB, or None."""
        policy = self._policy
        if path.rejected is not None or self._rejects_all:
            return ((None, keys),)
        if policy is None:
            return ((path, keys),)
        skip = 4 if family in self.add_path else 0
        return (
            (policy.apply(path, family, lists), part)
            for lists, part in policy.group_by_matching_lists(family, keys, skip)
        )

    def routes(self, family: Family) -> Iterator[tuple[bytes, Path, Path | None]]:
        """Iterate over prefix, path as received, and path in the Loc-RIB, or None if not there."""
        if family in self._shared:
            for nlri, path in self.items(family):
                yield nlri, path, None if path.rejected is not None else path
            return
        unused = self._not_installed.get(family, set())
        skip = 4 if family in self.add_path else 0
        policy = self._policy
        for key, path in self._tables.get(family, {}).items():
            nlri = key[skip:]
            if self._rejects_all or key in unused:
                yield nlri, path, None
            elif policy is None:
                yield nlri, path, path
            else:
                yield nlri, path, policy.apply(path, family, policy.matching_lists(family, nlri))
