"""The generated FRRConfigurations that differ from the stored ones: objects to write and to delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconcilers.model import Delete, Generated
from reconcilers.ovnk.errors import ConfigurationPending
from reconcilers.ovnk.results import Result, Version
from reconcilers.ovnk.stored_objects import Stored, StoredKey, deletion, generated
from reconcilers.ovnk.translation import OfSource
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.ovnk.networkattachmentdefinition import ROUTE_ADVERTISEMENTS as KEY


class _Differences(NamedTuple):
    """The objects of one RouteAdvertisements that differ from the stored ones."""

    version: Version
    """Of the objects that were compared."""
    differing: Mapping[StoredKey, Generated]


class Compared(NamedTuple):
    """The differences from the stored objects: the state from one comparison to the next."""

    stored: Stored
    advertisements: Mapping[str, _Differences]
    """By the name of RouteAdvertisements."""


class ChangedObjects(NamedTuple):
    """The objects to write and to delete."""

    writes: list[Generated]
    deletions: list[Delete]
    compared: Compared
    """For the next comparison."""


def changed_objects(
    results: Iterable[Result], stored: Stored, before: Compared | None, *, all_objects: bool
) -> ChangedObjects:
    """Return the generated FRRConfigurations to write, and the stored ones to delete.

    While the stored objects are the same as ``before``, only changed generated objects are compared.
    ``all_objects``: objects that are as they have to be are returned, too.
    """
    former = before.advertisements if before is not None and before.stored is stored else {}
    advertisements: dict[str, _Differences] = {}
    writes: list[Generated] = []
    deletions = [deletion(row) for row in stored.duplicates]
    names: set[str] = set()
    for result in results:
        name, version = result.name, result.version
        names.add(name)
        if result.error is not None and not isinstance(result.error, ConfigurationPending):
            # The last good state stays.
            continue
        keys: Iterable[StoredKey] = result.wanted
        differing: dict[StoredKey, Generated] = {}
        last = former.get(name)
        if last is not None and version is not None:
            if version.identity is last.version.identity:
                keys, differing = (), dict(last.differing)
            elif version.former is last.version.identity:
                keys, differing = version.changed, dict(last.differing)
        for key in keys:
            differing.pop(key, None)
            wanted = result.wanted.get(key)
            if wanted is None:
                continue
            row = stored.objects.get(key)
            if all_objects or _differs(row, name, wanted):
                differing[key] = generated(name, key, wanted.spec, row)
        if version is not None:
            advertisements[name] = _Differences(version, differing)
        writes += (differing[key] for key in sorted(differing))
        deletions += _superfluous(stored, result)
    for name in sorted(stored.by_advertisements.keys() - names):
        keys = stored.by_advertisements[name]
        deletions += (deletion(stored.objects[key]) for key in sorted(keys))
    # An object whose label or annotation was edited is written under its name, and not withdrawn.
    written = {write.object for write in writes}
    deletions = [deleted for deleted in deletions if deleted.object not in written]
    return ChangedObjects(writes, deletions, Compared(stored, advertisements))


def _differs(row: FRRConfiguration | None, name: str, wanted: OfSource) -> bool:
    """True if the stored object, if any, is not as it has to be for RouteAdvertisements of a name."""
    return (
        row is None
        or bool(row.invalid)
        or row.metadata.labels.get(KEY) != name
        or row.spec != wanted.spec
    )


def _superfluous(stored: Stored, result: Result) -> Iterable[Delete]:
    """Yield the deletions of objects that are no longer generated of RouteAdvertisements."""
    keys = stored.by_advertisements.get(result.name, frozenset())
    wanted = result.wanted.keys()
    if keys and not keys <= wanted:
        for key in sorted(keys - wanted):
            yield deletion(stored.objects[key])
