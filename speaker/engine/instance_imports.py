"""Routes of one instance in the Loc-RIB of another (VRF route leaking), kept up with every change.

An importing instance has the best of the paths that the other instance originates or accepts itself, so
that nothing is passed on twice and there is no loop. It receives the changes of the other's Loc-RIB as
its peers are, before any UPDATE of the same turn is sent. Paths are converted once for each attribute
set, not for each prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, final
from weakref import WeakKeyDictionary

from speaker.api import InstanceConfig, InstanceImport
from speaker.engine.instance import Instance
from speaker.engine.sliced_work import (
    FAILOVER_UNITS,
    LOOKUPS_PER_UNIT,
    SLICE_UNITS,
    STEP_ROUTES,
    SlicedWork,
    Steps,
)
from speaker.nlri import Family
from speaker.rib.decision import best
from speaker.rib.instance_import import Border, imported_path, imported_source
from speaker.rib.loc_rib import LocRib, TableChanges
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy, compile_import

MIN_SOURCES: Final = 64
"""Sources of an instance that are kept before sources without routes are released."""


@final
class InstanceImports:
    """The imports between all instances of an engine."""

    def __init__(self, instances: Mapping[str, Instance], work: SlicedWork) -> None:
        self._instances = instances
        self._work = work
        self._links: dict[tuple[str, str], _Import] = {}
        """By the names of the importing and of the imported instance."""
        self.imported: tuple[Instance, ...] = ()
        """The instances whose routes others import."""

    def follow_configuration(self) -> None:
        """Apply the configuration of all instances, after that of one changed."""
        wanted: dict[tuple[str, str], tuple[Instance, Instance, InstanceImport]] = {}
        for name, instance in self._instances.items():
            for imported in instance.config.imports:
                origin = self._instances.get(imported.instance)
                if origin is not None:
                    wanted[name, imported.instance] = (instance, origin, imported)
        for key, link in list(self._links.items()):
            if key not in wanted or link.target is not wanted[key][0]:
                del self._links[key]
                self._work.add(link.end())
        for key, (target, origin, config) in wanted.items():
            known = self._links.get(key)
            if known is None:
                known = self._links[key] = _Import(target)
            if origin.config.imports:
                origin.outbound.loc.track_all_paths()
            if known.configure(origin, config):
                self._work.add(known.import_all())
        self.imported = tuple([link.origin for link in self._links.values()])


@final
class _Import:
    """The routes that one instance imports from another."""

    def __init__(self, target: Instance) -> None:
        self.target = target
        self.origin = target
        """The instance that the routes are of; set by `configure`."""
        self._config: InstanceImport | None = None
        self._policy: CompiledPolicy | None = None
        self._border: Border | None = None
        self._held: dict[Family, dict[bytes, Path]] = {}
        """The imported paths by prefix."""
        self._paths: WeakKeyDictionary[Path, Path | None] = WeakKeyDictionary()
        """Path of the other instance -> path as imported, or None if it is not imported."""
        self._sources: dict[Source, Source] = {}
        self._most_sources = MIN_SOURCES
        self._version = 0
        """Of what is imported; steps of an earlier one are not continued."""

    def configure(self, origin: Instance, config: InstanceImport) -> bool:
        """Follow the routes of an instance; returns whether `import_all` is due."""
        border = _border(self.target.config, origin.config)
        if (self.origin, self._config, self._border) == (origin, config, border):
            return False
        self.origin.outbound.followers.pop(self, None)
        origin.outbound.followers[self] = None
        if border != self._border:
            self._paths.clear()
            self._sources.clear()
        if self._config is None or config.import_ != self._config.import_:
            self._policy = compile_import(origin.name, config.import_)
        self.origin, self._config, self._border = origin, config, border
        self._version += 1
        return True

    def end(self) -> Steps:
        """Withdraw everything, in steps."""
        self.origin.outbound.followers.pop(self, None)
        self._version += 1
        return self._withdraw_all()

    def _withdraw_all(self) -> Steps:
        for family, held in self._held.items():
            while held:
                some = list(islice(held, STEP_ROUTES))
                self._withdraw(family, some)
                yield len(some)

    # ---------------------------------------------------------------- changes

    def changed(self, changes: Mapping[Family, TableChanges]) -> None:
        """Import changes of the other instance's Loc-RIB (`OutboundUpdates.followers`)."""
        if self.origin.config.imports:
            # A path of its own may have changed behind an imported one.
            for family, changed in changes.items():
                table = self.origin.outbound.loc.tables[family]
                # Sorted: the order must not depend on hashes, so that a recorded run replays.
                self._import(family, _own(table, sorted(changed.prefixes())))
            return
        for family, changed in changes.items():
            for _, new, nlri in changed.best:
                self._import(family, ((new, nlri),))

    def import_all(self) -> Steps:
        """Import the present routes in steps; only differences change the target's Loc-RIB.

        What changes meanwhile is imported at once.
        """
        return self._import_all(self._version)

    def _import_all(self, version: int) -> Steps:
        tables = self.origin.outbound.loc.tables
        for family, held in list(self._held.items()):
            table = tables.get(family, ())
            for some in _steps(list(held)):
                if self._version != version:
                    return
                gone = [nlri for nlri in some if nlri not in table]
                self._withdraw(family, gone)
                yield len(gone) + len(some) // LOOKUPS_PER_UNIT
        for family, table_, prefixes in self.origin.outbound.loc.slices(STEP_ROUTES):
            if self._version != version:
                return
            if prefixes is None:
                yield SLICE_UNITS
            else:
                self._import(family, _own(table_, prefixes))
                yield FAILOVER_UNITS * len(prefixes)

    def _import(
        self, family: Family, routes: Iterable[tuple[Path | None, Sequence[bytes]]]
    ) -> None:
        """Import the path of prefixes; None withdraws them."""
        for path, nlri in routes:
            imported = None if path is None else self._imported(path)
            if imported is None:
                self._withdraw(family, nlri)
                continue
            policy = self._policy
            parts: Iterable[tuple[int, Sequence[bytes]]] = (
                ((0, nlri),) if policy is None else policy.group_by_matching_lists(family, nlri)
            )
            for lists, part in parts:
                accepted = imported if policy is None else policy.apply(imported, family, lists)
                if accepted is None:
                    self._withdraw(family, part)
                else:
                    self._announce(family, accepted, part)

    def _announce(self, family: Family, path: Path, nlri: Sequence[bytes]) -> None:
        held = self._held.setdefault(family, {})
        others: dict[Source, list[bytes]] = {}
        new: list[bytes] = []
        for prefix in nlri:
            before = held.get(prefix)
            if before is path:
                continue
            new.append(prefix)
            if before is not None and before.source is not path.source:
                others.setdefault(before.source, []).append(prefix)
        if not new:
            return
        held.update(dict.fromkeys(new, path))
        table = self.target.outbound.loc.table(family)
        table.announce(path, new)
        for source, prefixes in others.items():
            table.withdraw(source, prefixes)

    def _withdraw(self, family: Family, nlri: Sequence[bytes]) -> None:
        held = self._held.get(family)
        if not held:
            return
        by_source: dict[Source, list[bytes]] = {}
        for prefix in nlri:
            path = held.pop(prefix, None)
            if path is not None:
                by_source.setdefault(path.source, []).append(prefix)
        table = self.target.outbound.loc.table(family)
        for source, prefixes in by_source.items():
            table.withdraw(source, prefixes)

    # ------------------------------------------------------------------ paths

    def _imported(self, path: Path) -> Path | None:
        known = self._paths.get(path, path)
        if known is path:
            border = self._border
            assert border is not None  # noqa: S101  `configure` was called
            known = imported_path(path, self._source(path.source, border), border)
            self._paths[path] = known
        return known

    def _source(self, source: Source, border: Border) -> Source:
        known = self._sources.get(source)
        if known is None:
            if len(self._sources) >= self._most_sources:
                self._release_sources()
            number = self.target.next_path_id()
            known = self._sources[source] = imported_source(source, border, number)
        return known

    def _release_sources(self) -> None:
        """Release the sources of sessions that are gone."""
        used = {path.source for held in self._held.values() for path in held.values()}
        self._sources = {source: own for source, own in self._sources.items() if own in used}
        self._paths.clear()
        self._most_sources = max(MIN_SOURCES, 2 * len(self._sources))


def _steps(prefixes: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Iterate over prefixes in the number of one step."""
    return (prefixes[at : at + STEP_ROUTES] for at in range(0, len(prefixes), STEP_ROUTES))


def _own(table: LocRib, nlri: Iterable[bytes]) -> Iterator[tuple[Path | None, Sequence[bytes]]]:
    """Yield the best of the paths that are not imported, with its prefixes; None without any."""
    groups: dict[Path | None, list[bytes]] = {}
    for prefix in nlri:
        paths = table.paths(prefix)
        path: Path | None = paths[0] if paths else None
        if path is not None and path.source.imported_from is not None:
            own = [path for path in paths if path.source.imported_from is None]
            path = best(own, table.metric) if own else None
        groups.setdefault(path, []).append(prefix)
    yield from groups.items()


def _border(target: InstanceConfig, origin: InstanceConfig) -> Border:
    confederations = (target.confederation, origin.confederation)
    identifiers = [
        confederation.identifier for confederation in confederations if confederation is not None
    ]
    same_as = target.local_asn == origin.local_asn and len(identifiers) != 1
    own = {target.local_asn}
    if target.confederation is not None:
        own.add(target.confederation.identifier)
    return Border(
        instance=origin.name,
        same_as=same_as and len(set(identifiers)) <= 1,
        same_confederation=len(identifiers) == 2 and len(set(identifiers)) == 1,
        own_asns=frozenset(own),
    )
