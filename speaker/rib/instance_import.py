"""A path as another instance of this router imports it (VRF route leaking).

Pure functions of the path and of the border between the two instances. The path keeps its attributes.
Where the instances are different ASes, what belongs to one AS stays there, as between external peers
(RFC 4271 sections 5.1.4 and 5.1.5, RFC 4360 section 6, RFC 4456 section 8, RFC 5065 section 4); no AS
number is prepended, since no AS is in between.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from speaker.attribute import PathAttributes
from speaker.attribute.as_path import without_confederation
from speaker.rib.export import without_non_transitive
from speaker.rib.path import NEXT_HOP_KEPT, NEXT_HOP_SELF, NEXT_HOP_SET, Path, Source


class Border(NamedTuple):
    """The inputs of an import, besides the path."""

    instance: str
    """The name of the instance that the routes are of."""
    same_as: bool
    """Whether both instances are one AS."""
    same_confederation: bool
    """Whether both are in one confederation, or one AS."""
    own_asns: frozenset[int]
    """The AS numbers of the importing instance: a path with one of them is a loop."""


def imported_source(source: Source, border: Border, sent_path_id: int) -> Source:
    """Return the source of imported paths: as the path's own, of another instance."""
    name = border.instance if source.local else f"{border.instance}/{source.name}"
    return Source(
        name,
        address=source.address,
        router_id=source.router_id,
        # Between two ASes every path is external.
        ebgp=source.ebgp or not (source.local or border.same_as),
        internal=source.internal and border.same_as,
        sent_path_id=sent_path_id,
        imported_from=border.instance,
        direct=source.direct,
        interface=source.interface,
    )


def imported_path(path: Path, source: Source, border: Border) -> Path | None:
    """Return a path of another instance as it is imported, or None for a loop.

    The next hop is in the other VRF: towards peers it is this router, which forwards between them.
    """
    attributes = path.attributes
    for _, asns in attributes.as_path:
        if not border.own_asns.isdisjoint(asns):
            return None
    overrides = path.overrides & ~(NEXT_HOP_SET | NEXT_HOP_KEPT) | NEXT_HOP_SELF
    if not border.same_as:
        attributes = _of_another_as(path, border)
    return Path(attributes, source, None, overrides)


def _of_another_as(path: Path, border: Border) -> PathAttributes:
    attributes = path.attributes
    as_path = attributes.as_path
    return replace(
        attributes,
        as_path=as_path if border.same_confederation else without_confederation(as_path),
        local_preference=None,
        med=attributes.med if path.source.local else None,
        originator_id=None,
        cluster_list=(),
        **without_non_transitive(attributes),
    )
