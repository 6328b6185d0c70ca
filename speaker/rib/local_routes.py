"""Routes that this router originates: attributes of the API as shared paths.

Equal attributes are the same `Path` for as long as a table holds it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from weakref import WeakValueDictionary

from speaker.api import RouteAttributes
from speaker.attribute import PathAttributes, address_text
from speaker.nlri import Family
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source

LOCAL = Source("local")
"""The source of every originated route, in every instance."""


class LocalPaths:
    """The path of each attribute set."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: WeakValueDictionary[RouteAttributes, Path] = WeakValueDictionary()

    def path(self, attributes: RouteAttributes) -> Path:
        """Return the path with these attributes."""
        path = self._known.get(attributes)
        if path is None:
            path = self._known[attributes] = Path(_as_path_attributes(attributes), LOCAL)
        return path

    def apply(
        self,
        table_of: Callable[[Family], LocRib],
        changes: Mapping[Family, Mapping[bytes, RouteAttributes | None]],
    ) -> None:
        """Apply changes of originated routes: prefix to attributes, None to withdraw."""
        for family, routes in changes.items():
            gone: list[bytes] = []
            announced: dict[RouteAttributes, list[bytes]] = {}
            for nlri, attributes in routes.items():
                if attributes is None:
                    gone.append(nlri)
                else:
                    known = announced.get(attributes)
                    if known is None:
                        announced[attributes] = [nlri]
                    else:
                        known.append(nlri)
            table = table_of(family)
            if gone:
                table.withdraw(LOCAL, gone)
            for attributes, nlri_list in announced.items():
                table.announce(self.path(attributes), nlri_list)


def route_attributes(path: Path) -> RouteAttributes:
    """Return the attributes that a local path was made of: the inverse of `LocalPaths.path`."""
    attributes = path.attributes
    return RouteAttributes(
        origin=attributes.origin,
        med=attributes.med,
        local_preference=attributes.local_preference,
        communities=attributes.communities,
        large_communities=attributes.large_communities,
        extended_communities=attributes.extended_communities,
        next_hop=address_text(attributes.next_hop) if attributes.next_hop else None,
    )


def _as_path_attributes(attributes: RouteAttributes) -> PathAttributes:
    next_hop = attributes.next_hop
    return PathAttributes(
        origin=attributes.origin,
        med=attributes.med,
        local_preference=attributes.local_preference,
        communities=_without_duplicates(attributes.communities),
        large_communities=tuple(dict.fromkeys(attributes.large_communities)),
        extended_communities=tuple(dict.fromkeys(attributes.extended_communities)),
        next_hop=b"" if next_hop is None else ipaddress.ip_address(next_hop).packed,
    )


def _without_duplicates(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(values))
