"""Route sets with a limited number of prefixes: copies of the routes of another set, but not all.

A limited set has every prefix that an administrator decides on (pod networks, ClusterIPs, pools,
prefixes of FRRConfigurations), and the addresses of Services with the lowest rank: of the
oldest Services, then by namespace and name, and within a Service in the order of its list.
The order is the same on all nodes.

A changed route of the unlimited set costs the logarithm of the number of its routes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconcilers.intent.first_by_rank import FirstByRank, Rank
from reconcilers.intent_tables import KEY, IntentTables
from reconcilers.model import ObjectRef, Route
from reconcilers.sliced_work import Pieces, Slices
from speaker.nlri import Family
from statedb import WriteTxn

Limits = tuple[tuple[Family, int], ...]
"""Limits by family, in the order of families; other families have none."""


class SetToLimit(NamedTuple):
    """The set that a limited one is made of, and the limits."""

    unlimited: str
    limits: Limits


class Use(NamedTuple):
    """The use of a limit."""

    prefixes: int = 0
    """Of the unlimited set."""
    of_services: int = 0
    """Prefixes that are addresses of Services only."""
    waiting: int = 0
    """Prefixes of Services that the limited set does not have."""
    services: tuple[tuple[bytes, ObjectRef], ...] = ()
    """The first Services of which prefixes wait, with the first one of each."""


NO_USE: Final = Use()
NAMED_SERVICES: Final = 20
"""Services of which prefixes wait that have a problem of their own."""
SEARCHED_PREFIXES: Final = 500
"""Prefixes among which these are searched."""


def limited_name(unlimited: str, limits: Limits) -> str:
    """Return the name of a limited route set: it changes with the limits."""
    return f"{unlimited}~{','.join(f'{family}={limit}' for family, limit in limits)}"


class _Family:
    """The prefixes of one family of an unlimited set."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.own: set[bytes] = set()
        """Prefixes that an administrator decides on."""
        self.of_services: FirstByRank[bytes] = FirstByRank(limit)

    def put(self, nlri: bytes, route: Route | None) -> None:
        """Take a route of the unlimited set, or None without one."""
        ranks = None if route is None else _ranks(route)
        if ranks:
            self.own.discard(nlri)
            self.of_services.put(nlri, (min(ranks)[0], nlri))
        else:
            self.of_services.discard(nlri)
            if route is None:
                self.own.discard(nlri)
            else:
                self.own.add(nlri)

    def settle(self) -> set[bytes]:
        """Return the prefixes that are sent now and were not, or the other way round."""
        self.of_services.size = max(0, self.limit - len(self.own))
        return self.of_services.settle()

    def __contains__(self, nlri: bytes) -> bool:
        """True if a prefix is within the limit."""
        return nlri in self.own or nlri in self.of_services


class _LimitedSet:
    """One limited set, and what it has of the unlimited one."""

    def __init__(self, name: str, of: SetToLimit) -> None:
        self.name = name
        self.unlimited = of.unlimited
        self.families = {family: _Family(limit) for family, limit in of.limits}
        self.changed: dict[tuple[Family, bytes], None] = {}
        """Prefixes whose route in the unlimited set has changed."""
        self.filled = False

    def has(self, family: Family, nlri: bytes) -> bool:
        """True if a prefix is within the limit of its family."""
        limited = self.families.get(family)
        return limited is None or nlri in limited


class LimitedSets:
    """Keeps the routes of all limited sets."""

    def __init__(self, intent: IntentTables, pieces: Pieces) -> None:
        """``pieces`` counts the prefixes of a slice."""
        self._routes = intent.routes
        self._pieces = pieces
        self._sets: dict[str, _LimitedSet] = {}
        self._of_unlimited: dict[str, list[_LimitedSet]] = {}
        self._waiting: dict[tuple[str, Family], tuple[tuple[bytes, ObjectRef], ...]] = {}
        """The first Services that wait, as of the last call of `write`."""
        self.changed = False
        """True if routes of a limited set, or their number, may have changed since `write`."""

    def note(self, route_set: str, family: Family, nlri: bytes) -> None:
        """Note a changed route of a set, of which limited sets may be copies."""
        for limited in self._of_unlimited.get(route_set, ()):
            limited.changed[family, nlri] = None
            self.changed = True

    def replace(self, txn: WriteTxn, wanted: Mapping[str, SetToLimit]) -> Slices[None]:
        """Set which limited sets there are: the sets that peers get; others lose their routes."""
        if not wanted and not self._sets:
            return
        for name in self._sets.keys() - wanted.keys():
            limited = self._sets.pop(name)
            self._of_unlimited[limited.unlimited].remove(limited)
            for row in self._routes.prefix(txn, KEY, (name,)):
                self._routes.delete(txn, (name, row.family, row.nlri))
                if self._pieces.fill_slice():
                    yield
        for name, of in wanted.items():
            if name not in self._sets:
                limited = self._sets[name] = _LimitedSet(name, of)
                self._of_unlimited.setdefault(of.unlimited, []).append(limited)
        self._of_unlimited = {name: sets for name, sets in self._of_unlimited.items() if sets}
        self.changed = True

    def write(self, txn: WriteTxn) -> Slices[int]:
        """Write the routes of limited sets that differ; returns their number."""
        written = 0
        for limited in self._sets.values():
            if not limited.filled:
                limited.changed.clear()
                for row in self._routes.prefix(txn, KEY, (limited.unlimited,)):
                    limited.changed[row.family, row.nlri] = None
                limited.filled = True
            changed, limited.changed = limited.changed, {}
            for family, nlri in changed:
                of_family = limited.families.get(family)
                if of_family is not None:
                    of_family.put(nlri, self._routes.get(txn, (limited.unlimited, family, nlri)))
                if self._pieces.fill_slice():
                    yield
            for family, of_family in limited.families.items():
                changed.update(((family, nlri), None) for nlri in of_family.settle())
            for family, nlri in changed:
                written += self._write(txn, limited, family, nlri)
                if self._pieces.fill_slice():
                    yield
            for family, of_family in limited.families.items():
                self._waiting[limited.name, family] = self._services_that_wait(
                    txn, limited.unlimited, family, of_family
                )
        self._waiting = {
            key: services for key, services in self._waiting.items() if key[0] in self._sets
        }
        self.changed = False
        return written

    def _write(self, txn: WriteTxn, limited: _LimitedSet, family: Family, nlri: bytes) -> int:
        key = (limited.name, family, nlri)
        present = self._routes.get(txn, key)
        route = None
        if limited.has(family, nlri):
            route = self._routes.get(txn, (limited.unlimited, family, nlri))
        if route is None:
            if present is None:
                return 0
            self._routes.delete(txn, key)
            return 1
        wanted = replace(route, route_set=limited.name)
        if wanted == present:
            return 0
        self._routes.upsert(txn, wanted)
        return 1

    def _services_that_wait(
        self, txn: WriteTxn, unlimited: str, family: Family, of_family: _Family
    ) -> tuple[tuple[bytes, ObjectRef], ...]:
        services: dict[ObjectRef, bytes] = {}
        for nlri in islice(of_family.of_services.waiting_keys(), SEARCHED_PREFIXES):
            route = self._routes.get(txn, (unlimited, family, nlri))
            ranks = None if route is None else _ranks(route)
            if ranks:
                services.setdefault(min(ranks)[1], nlri)
            if len(services) == NAMED_SERVICES:
                break
        return tuple((nlri, ref) for ref, nlri in services.items())

    def use(self, name: str, family: Family) -> Use:
        """Return the use of a limited set's limit, as of the last call of `write`."""
        limited = self._sets.get(name)
        of_family = None if limited is None else limited.families.get(family)
        if of_family is None:
            return NO_USE
        of_services = of_family.of_services
        return Use(
            len(of_family.own) + len(of_services),
            len(of_services),
            of_services.waiting,
            self._waiting.get((name, family), ()),
        )


def _ranks(route: Route) -> list[tuple[Rank, ObjectRef]] | None:
    """Return the rank that each Service gives a prefix; None where another object contributes it."""
    ranks: list[tuple[Rank, ObjectRef]] = []
    for part in route.contributions:
        if part.rank is None:
            return None
        ref = part.origin.object
        rank = (part.rank.created, ref.namespace, ref.name, part.rank.position)
        ranks.append((rank, ref))
    return ranks
