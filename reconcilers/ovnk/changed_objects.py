"""The generated FRRConfigurations that differ from the stored ones: objects to write and to delete."""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.model import Delete, Generated
from reconcilers.ovnk.errors import ConfigurationPending
from reconcilers.ovnk.results import Result
from reconcilers.ovnk.stored_objects import Stored, StoredKey, deletion, generated
from reconcilers.ovnk.translation import OfSource
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.ovnk.networkattachmentdefinition import ROUTE_ADVERTISEMENTS as KEY


class ChangedObjects:
    """Keeps what differs from one outcome to the next, while the stored objects are the same."""

    def __init__(self) -> None:
        self._stored: Stored | None = None
        self._differing: dict[str, dict[StoredKey, Generated]] = {}
        """By the name of RouteAdvertisements."""

    def compare(
        self, results: Iterable[Result], stored: Stored, *, all_objects: bool
    ) -> tuple[list[Generated], list[Delete]]:
        """Return the generated FRRConfigurations to write, and the stored ones to delete.

        ``all_objects``: objects that are as they have to be are returned, too.
        """
        same = stored is self._stored
        before, self._differing = self._differing, {}
        self._stored = stored
        writes: list[Generated] = []
        deletions = [deletion(row) for row in stored.duplicates]
        names: set[str] = set()
        for result in results:
            names.add(result.name)
            if result.error is not None and not isinstance(result.error, ConfigurationPending):
                # The last good state stays.
                continue
            keys: Iterable[StoredKey] = result.wanted
            differing: dict[StoredKey, Generated] = {}
            if same and result.changed is not None and result.name in before:
                keys, differing = result.changed, before[result.name]
            for key in keys:
                differing.pop(key, None)
                wanted = result.wanted.get(key)
                if wanted is None:
                    continue
                row = stored.objects.get(key)
                if all_objects or _differs(row, result.name, wanted):
                    differing[key] = generated(result.name, key, wanted.spec, row)
            self._differing[result.name] = differing
            writes += (differing[key] for key in sorted(differing))
            deletions += _superfluous(stored, result)
        for name in sorted(stored.by_advertisements.keys() - names):
            keys = stored.by_advertisements[name]
            deletions += (deletion(stored.objects[key]) for key in sorted(keys))
        # An object whose label or annotation was edited is written under its name, and not withdrawn.
        written = {write.object for write in writes}
        return writes, [deleted for deleted in deletions if deleted.object not in written]


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
