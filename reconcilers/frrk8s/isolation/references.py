"""References of objects, and whether their referents exist: VRFs, and objects of other kinds. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from reconcilers.frrk8s.field_values import Prefix
from reconcilers.frrk8s.isolation.isolated_objects import IsolatedObject
from reconcilers.model import ObjectRef


class Providers:
    """The providers among a changing set of objects: routers of imported VRFs, and other referents."""

    def __init__(self, objects: Iterable[IsolatedObject]) -> None:
        self._prefixes: dict[str, Counter[Prefix]] = {}
        self._count: Counter[Hashable] = Counter()
        self._known: dict[str, frozenset[Prefix]] = {}
        for member in objects:
            self._count.update(member.provided)
            for vrf, prefixes in member.routed.items():
                self._prefixes.setdefault(vrf, Counter()).update(prefixes)

    def remove(self, member: IsolatedObject) -> None:
        """Remove an object as a provider of referents for others, in isolation."""
        self._count.subtract(member.provided)
        for vrf, prefixes in member.routed.items():
            self._prefixes[vrf].subtract(prefixes)
            self._known.pop(vrf, None)

    def has(self, wanted: Iterable[Hashable]) -> bool:
        """True if all referents have a provider among isolation's objects."""
        return all(self._count[vrf] > 0 for vrf in wanted)

    def prefixes(self, member: IsolatedObject) -> dict[str, frozenset[Prefix]]:
        """Return the prefixes of the VRFs that an object's references import, if they have a router."""
        return {vrf: self._of(vrf) for vrf in member.imported if self._count[vrf] > 0}

    def _of(self, vrf: str) -> frozenset[Prefix]:
        prefixes = self._known.get(vrf)
        if prefixes is None:
            counts = self._prefixes[vrf].items()
            prefixes = self._known[vrf] = frozenset(prefix for prefix, count in counts if count > 0)
        return prefixes


class References:
    """The references among a shrinking set of objects; more objects may stay beside it."""

    def __init__(
        self,
        objects: dict[ObjectRef, IsolatedObject],
        others: Iterable[IsolatedObject],
        is_resolved: Callable[[IsolatedObject, Providers], bool],
    ) -> None:
        self._objects = objects
        self._is_resolved = is_resolved
        self._users: dict[Hashable, list[IsolatedObject]] = {}
        for member in objects.values():
            for wanted in member.wanted:
                self._users.setdefault(wanted, []).append(member)
        given = [*others, *objects.values()] if self._users else ()
        self._providers = Providers(given)
        self._suspects = {user.ref: user for users in self._users.values() for user in users}

    def unresolved(self) -> list[IsolatedObject]:
        """Return the objects whose references isolation finds unresolved since the last call."""
        suspects, self._suspects = self._suspects, {}
        return [
            suspect
            for suspect in suspects.values()
            if suspect.ref in self._objects and not self._is_resolved(suspect, self._providers)
        ]

    def remove(self, objects: Iterable[IsolatedObject]) -> None:
        """Remove objects from isolation; the references to them are looked at again."""
        for member in objects:
            del self._objects[member.ref]
            self._providers.remove(member)
            for lost in member.provided:
                self._suspects.update((user.ref, user) for user in self._users.get(lost, ()))
