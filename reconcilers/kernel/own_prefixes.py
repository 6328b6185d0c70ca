"""The prefixes that this node advertises itself, by VRF: no peer's route to one is installed. Pure.

The speaker's Loc-RIB has some of them, as routes of the instance. Prefixes of Services and pools stand
in route sets alone, where a peer's route, from another node with the same Service, is the best path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, final

from reconcilers.kernel.routing import DEFAULT_VRF
from reconcilers.model import Instance, Peer, Route
from speaker.nlri import Family

Prefixes: TypeAlias = dict[Family, set[bytes]]
NONE: Final[frozenset[bytes]] = frozenset()


@final
class OwnPrefixes:
    """The prefixes of the route sets that peers of a VRF are advertised."""

    def __init__(self) -> None:
        self._prefixes: dict[str, Prefixes] = {}
        """By route set."""
        self._sets: dict[str, frozenset[str]] = {}
        """The route sets by VRF."""

    def configure(
        self, instances: Iterable[Instance], peers: Iterable[Peer]
    ) -> dict[str, Prefixes]:
        """Follow instances and peers; returns the prefixes that are own ones now, or no more."""
        vrfs = {row.name: row.vrf or DEFAULT_VRF for row in instances}
        sets: dict[str, set[str]] = {}
        for row in peers:
            if row.route_set is not None and row.instance in vrfs:
                sets.setdefault(vrfs[row.instance], set()).add(row.route_set)
        before, self._sets = self._sets, {vrf: frozenset(names) for vrf, names in sets.items()}
        return {
            vrf: self._all(before.get(vrf, frozenset()) ^ self._sets.get(vrf, frozenset()))
            for vrf in before.keys() | self._sets.keys()
            if before.get(vrf) != self._sets.get(vrf)
        }

    def change(self, rows: Iterable[tuple[Route, bool]]) -> dict[str, Prefixes]:
        """Follow routes of route sets; returns the prefixes that are own ones now, or no more."""
        changed: dict[str, Prefixes] = {}
        for row, present in rows:
            prefixes = self._prefixes.setdefault(row.route_set, {}).setdefault(row.family, set())
            (prefixes.add if present else prefixes.discard)(row.nlri)
            changed.setdefault(row.route_set, {}).setdefault(row.family, set()).add(row.nlri)
        return {
            vrf: _union(changed[name] for name in names if name in changed)
            for vrf, names in self._sets.items()
            if not names.isdisjoint(changed)
        }

    def _all(self, names: Iterable[str]) -> Prefixes:
        return _union(self._prefixes.get(name, {}) for name in names)

    def among(self, vrf: str, family: Family, prefixes: Collection[bytes]) -> Iterator[bytes]:
        """Iterate over those prefixes that this node advertises itself in a VRF: own ones."""
        for name in self._sets.get(vrf, ()):
            if own := self._prefixes.get(name, {}).get(family):
                yield from own.intersection(prefixes)

    def has(self, vrf: str, family: Family, nlri: bytes) -> bool:
        """Return whether a prefix is an own one: this node advertises it in a VRF."""
        sets = (self._prefixes.get(name, {}) for name in self._sets.get(vrf, ()))
        return any(nlri in prefixes.get(family, NONE) for prefixes in sets)


def _union(parts: Iterable[Mapping[Family, set[bytes]]]) -> Prefixes:
    union: Prefixes = {}
    for prefixes in parts:
        for family, some in prefixes.items():
            union.setdefault(family, set()).update(some)
    return union
