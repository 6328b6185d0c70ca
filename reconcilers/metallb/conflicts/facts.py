"""What the rules of conflicts know of all objects of a node, and how problems are worded. Pure."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from reconcilers.metallb.objects import Objects, aliases, shortest_length
from reconcilers.metallb.pool_selection import PoolSelection
from reconcilers.model import ObjectRef, Problem, ref_to
from resources.metallb import kinds
from resources.metallb.ipaddresspool import Block, blocks
from resources.metallb.objects import MetalLBObject

T = TypeVar("T")

VERSIONS: Final = (4, 6)
MAX_COMPARED: Final = 100
"""Objects in conflict with one object that are looked for; more are not counted."""
MAX_LISTED_OBJECTS: Final = 8
"""Objects that a message names; of the others it has the number."""


class Rule(Protocol):
    """One rule that objects may break together, and those that are taken."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add an object."""
        ...

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        """Iterate over the taken objects with which another one breaks the rule."""
        ...

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield the problems of an object with others; of several objects each may yield the same.

        Called once all objects are taken, for each of them in order.
        """
        ...


class PoolClass(msgspec.Struct, frozen=True, eq=False):
    """Pools that the same advertisements select and that allow the same aggregates.

    What an advertisement contradicts is the same for all of them: a thousand pools that a thousand
    advertisements select are one class, and not a million pairs. A class equals itself alone: to
    compare the selections of which its pools are part would take as long as there are selections.
    """

    shortest: tuple[tuple[int, int], ...]
    """The shortest length of an aggregate, by version of the addresses: pairs of both."""


class Span(NamedTuple):
    """Consecutive addresses of a pool, as numbers; of one version of IP."""

    first: int
    last: int
    pool: ObjectRef
    entry: Block


class Facts:
    """Objects that are valid by themselves, and what follows from all of them."""

    def __init__(self, objects: Objects, wrong: AbstractSet[ObjectRef] = frozenset()) -> None:
        sound = objects.only(frozenset(ref for ref, _ in objects.refs()) - wrong)
        self.rows: dict[ObjectRef, MetalLBObject] = dict(sound.refs())
        self.names = aliases(sound)
        selection = PoolSelection(sound.pools)
        pools = selection.rows
        pool_refs = {name: ref_to(kinds.IP_ADDRESS_POOL, row) for name, row in pools.items()}
        selections: dict[tuple[str, ...], int] = {}
        selected: list[frozenset[ObjectRef]] = []
        self.selection_of: dict[ObjectRef, int] = {}
        """The number of the selection of an advertisement; the same for the same pools."""
        of_pool: dict[str, list[int]] = {name: [] for name in pools}
        for row in sound.advertisements:
            names = selection.of(row)
            number = selections.setdefault(names, len(selections))
            self.selection_of[ref_to(kinds.BGP_ADVERTISEMENT, row)] = number
            if number == len(selected):
                selected.append(frozenset(pool_refs[name] for name in names))
                for name in names:
                    of_pool[name].append(number)
        self.pools_of = {ref: selected[number] for ref, number in self.selection_of.items()}
        """The pools that an advertisement selects; one set for equal selections."""
        spans = [
            (network.version, Span(int(network[0]), int(network[-1]), ref, entry))
            for name, ref in pool_refs.items()
            for entry in blocks(pools[name])
            for network in entry.networks
        ]
        self.spans: dict[int, list[Span]] = {
            version: sorted((span for of, span in spans if of == version), key=lambda one: one[:3])
            for version in VERSIONS
        }
        """By version of IP, in the order of their first addresses."""
        self.places: dict[ObjectRef, list[tuple[int, int]]] = defaultdict(list)
        """The spans of a pool: version, and the place in `spans`."""
        for version, of_version in self.spans.items():
            for i, span in enumerate(of_version):
                self.places[span.pool].append((version, i))
        known: dict[tuple[object, ...], PoolClass] = {}
        classes: list[list[PoolClass]] = [[] for _ in selected]
        self.class_of: dict[ObjectRef, PoolClass] = {}
        for name, ref in pool_refs.items():
            shortest = tuple(
                (version, length)
                for version in VERSIONS
                if (length := shortest_length(pools[name], version)) is not None
            )
            key = (tuple(of_pool[name]), shortest)
            one = known.get(key)
            if one is None:
                one = known[key] = PoolClass(shortest)
                for number in of_pool[name]:
                    classes[number].append(one)
            self.class_of[ref] = one
        self.classes_of = {ref: classes[number] for ref, number in self.selection_of.items()}
        """The classes of the pools that an advertisement selects."""
        self.echoing = {row.metadata.name for row in sound.profiles if row.spec.echo_mode}
        """The names of BFD profiles with the echo mode."""

    def has_ipv6(self, pool: ObjectRef) -> bool:
        """True if a pool has IPv6 addresses."""
        return any(version == 6 for version, _ in self.class_of[pool].shortest)


def listed(values: Mapping[ObjectRef, object]) -> str:
    """List the values, each with the objects that have it; at most eight objects are named."""
    objects: dict[object, list[str]] = {}
    for ref, value in itertools.islice(sorted(values.items()), MAX_LISTED_OBJECTS):
        objects.setdefault(value, []).append(str(ref))
    more = len(values) - MAX_LISTED_OBJECTS
    parts = [f"{value} in {', '.join(refs)}" for value, refs in objects.items()]
    return "; ".join(parts) + (f"; and {more} more objects" if more > 0 else "")


def others_beside(ref: ObjectRef, number: int) -> str:
    """Return a clause about the other objects with which one is in conflict; empty without any."""
    if number <= 0:
        return ""
    count = f"at least {number}" if number >= MAX_COMPARED - 1 else str(number)
    return f"; {ref} is in conflict with {count} more"


def following(others: Iterable[T], is_later: Callable[[T], bool]) -> T:
    """Return the first that comes later, else the first of all.

    Of objects that are all in conflict, each then names another one.
    """
    found: Sequence[T] = list(others)
    return next(filter(is_later, found), found[0])
