"""Exports of one object to one neighbour: prefixes, local preferences and communities. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from reconcilers.frrk8s.field_values import MED, Prefix, prefix, prefixes_of
from reconcilers.frrk8s.unit_parts import NeighborKey, RedistributedPart
from reconcilers.model import Attributes
from reconcilers.redistribution import Redistribution
from reconcilers.sliced_work import MERGED_PER_PIECE, Pieces, Slices, quick
from resources.errors import MAX_LISTED_ERRORS, FieldError, checked_items
from resources.frrk8s.communities import Community, parse_community
from resources.frrk8s.neighbor import Advertise
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

NO_COMMUNITIES: Final[frozenset[Community]] = frozenset()


class Exported(NamedTuple):
    """The routes, and the rules that the entry breaks."""

    routes: Mapping[Prefix, Attributes]
    preferences: Mapping[Prefix, str]
    """The path of the entry that gives a prefix its local preference."""
    errors: list[FieldError]
    redistributed: RedistributedPart | None = None


class Available(NamedTuple):
    """The prefixes that a router may advertise."""

    prefixes: frozenset[Prefix]
    """Of the router and of its imports."""
    complete: bool = True
    """False where not all are known: an imported VRF is unresolved, or too many prefixes are wrong."""
    redistributions: tuple[Redistribution, ...] = ()
    """Of the router, and of its imports."""

    def has_redistributed(self, destination: Prefix) -> bool:
        """Return whether a redistribution permits the export of a prefix."""
        return any(redistribution.permits(*destination) for redistribution in self.redistributions)


class Exports:
    """The exports of one object to one neighbour (``toAdvertise``), compiled in slices of prefixes."""

    def __init__(
        self,
        spec: Advertise,
        available: Available,
        both: bool,
        key: NeighborKey,
        path: str,
        pieces: Pieces,
    ) -> None:
        """``both``: the session has both families, otherwise the one of the neighbour's address."""
        self._pieces = pieces
        self._spec = spec
        self._given = available
        self._available = available.prefixes
        self._complete = available.complete
        self._both = both
        self._key = key
        self._path = path
        self._errors: list[FieldError] = []
        self._allowed_known = True
        """False where the allowed prefixes are not all known."""
        self._preferences: dict[Prefix, tuple[int, str]] = {}
        self._communities: dict[Prefix, frozenset[Community]] = {}

    def compile(self) -> Slices[Exported]:
        """Compile the exports of the object to the neighbour."""
        allowed = yield from self._allowed()
        yield from self._take_preferences(allowed)
        yield from self._take_communities(allowed)
        redistributed = self._redistributed(allowed)
        if redistributed is not None:
            allowed -= redistributed.attributes.keys()
        shared: dict[tuple[frozenset[Community], int | None], Attributes] = {}
        routes: dict[Prefix, Attributes] = {}
        for some in quick(allowed, self._pieces):
            if some is None:
                yield
                continue
            for destination in some:
                preference = self._preferences.get(destination)
                communities = self._communities.get(destination, NO_COMMUNITIES)
                value = None if preference is None else preference[0]
                attributes = shared.get((communities, value))
                if attributes is None:
                    attributes = shared[communities, value] = _attributes(communities, value)
                routes[destination] = attributes
        paths = {
            destination: path
            for destination, (_, path) in self._preferences.items()
            if redistributed is None or destination in routes
        }
        return Exported(routes, paths, self._errors, redistributed)

    def _redistributed(self, allowed: frozenset[Prefix]) -> RedistributedPart | None:
        """Return the redistributed routes: all, or routes with listed prefixes."""
        redistributions = self._given.redistributions
        is_all = self._spec.allowed.mode == "all"
        if not redistributions:
            return None
        named = allowed | self._preferences.keys() | self._communities.keys()
        attributes: dict[Prefix, Attributes] = {}
        for destination in named - self._available:
            preference = self._preferences.get(destination)
            own = _attributes(
                self._communities.get(destination, NO_COMMUNITIES),
                None if preference is None else preference[0],
            )
            attributes[destination] = msgspec.structs.replace(own, incomplete=True)
        if not is_all and not attributes:
            return None
        return RedistributedPart(redistributions, None if is_all else (), attributes)

    def _error(self, path: str, message: str) -> None:
        self._errors.append(FieldError(path, f"{self._key}: {message}"))

    def _carried(self, destination: Prefix) -> bool:
        """True if the session has the family of a prefix."""
        return self._both or (destination[0] == IPV6_UNICAST) == (":" in self._key.end)

    def _all_carried(self, prefixes: Iterable[Prefix]) -> bool:
        return self._both or {family for family, _ in prefixes} <= {
            IPV6_UNICAST if ":" in self._key.end else IPV4_UNICAST
        }

    def _allowed(self) -> Slices[frozenset[Prefix]]:
        given = self._spec.allowed
        if given.mode == "all":
            self._allowed_known = self._complete
            return frozenset(
                destination for destination in self._available if self._carried(destination)
            )
        listed = yield from self._listed(given.prefixes, f"{self._path}.allowed.prefixes")
        self._allowed_known = len(self._errors) <= MAX_LISTED_ERRORS
        return listed

    def _listed(self, texts: tuple[str, ...], path: str) -> Slices[frozenset[Prefix]]:
        networks = yield from prefixes_of(texts, self._pieces)
        if networks is not None and self._all_carried(networks):
            listed = frozenset(networks)
            if self._pieces.fill_slice(1 + len(listed) // MERGED_PER_PIECE):
                yield
            if listed <= self._available or not self._complete:
                return listed
        # Some are wrong.
        prefixes: set[Prefix] = set()
        for i, text in checked_items(texts, path, self._errors):
            if self._pieces.fill_slice():
                yield
            try:
                destination = prefix(text)
            except ValueError as error:
                self._error(f"{path}[{i}]", str(error))
                continue
            if not self._carried(destination):
                self._error(f"{path}[{i}]", f"the session has no routes of the family of {text}")
            elif (
                destination not in self._available
                and self._complete
                and not self._given.has_redistributed(destination)
            ):
                reason = f"{text} is not a prefix of its router, or of one it imports"
                self._error(f"{path}[{i}]", reason)
            else:
                prefixes.add(destination)
        return frozenset(prefixes)

    def _with(
        self, texts: tuple[str, ...], allowed: frozenset[Prefix], path: str
    ) -> Slices[dict[Prefix, str]]:
        """Return the prefixes that an entry gives an attribute, as they are written."""
        networks = yield from prefixes_of(texts, self._pieces)
        if networks is not None and self._all_carried(networks):
            written = dict(zip(networks, texts, strict=True))
            if self._pieces.fill_slice(1 + len(written) // MERGED_PER_PIECE):
                yield
            if len(written) == len(texts) and (
                written.keys() <= allowed or not self._allowed_known
            ):
                return written
        # Some are wrong.
        with_path: dict[Prefix, str] = {}
        for i, text in checked_items(texts, path, self._errors):
            if self._pieces.fill_slice():
                yield
            try:
                destination = prefix(text)
            except ValueError as error:
                self._error(f"{path}[{i}]", str(error))
                continue
            reason = None
            if destination in with_path:
                reason = f"{text} is listed twice"
            elif not self._carried(destination):
                reason = f"the session has no routes of the family of {text}"
            elif (
                destination not in allowed
                and self._allowed_known
                and not self._redistributes(destination)
            ):
                reason = f"{text} is not advertised to it by this object"
            if reason is not None:
                self._error(f"{path}[{i}]", reason)
            with_path[destination] = text
        return with_path

    def _redistributes(self, destination: Prefix) -> bool:
        """Return whether a prefix is advertised if the kernel has it, without being listed."""
        return self._spec.allowed.mode == "all" and self._given.has_redistributed(destination)

    def _take_preferences(self, allowed: frozenset[Prefix]) -> Slices[None]:
        seen: set[int] = set()
        for i, entry in enumerate(self._spec.with_local_pref):
            path = f"{self._path}.withLocalPref[{i}]"
            value = entry.local_pref
            if value in seen:
                self._error(f"{path}.localPref", f"two entries have local preference {value}")
            seen.add(value)
            given = yield from self._with(entry.prefixes, allowed, f"{path}.prefixes")
            for some in quick(given.items(), self._pieces):
                if some is None:
                    yield
                    continue
                for destination, written in some:
                    before = self._preferences.get(destination)
                    if before is not None and before[0] != value:
                        text = f"{written} has local preference {before[0]} and {value}"
                        self._error(f"{path}.prefixes", text)
                    self._preferences[destination] = (value, f"{path}.localPref")

    def _take_communities(self, allowed: frozenset[Prefix]) -> Slices[None]:
        seen: set[Community] = set()
        for i, entry in enumerate(self._spec.with_community):
            path = f"{self._path}.withCommunity[{i}]"
            carried = yield from self._with(entry.prefixes, allowed, f"{path}.prefixes")
            try:
                value = parse_community(entry.community)
            except ValueError as error:
                self._error(f"{path}.community", str(error))
                continue
            if value in seen:
                text = f"two entries have community {entry.community}"
                self._error(f"{path}.community", text)
            seen.add(value)
            # Prefixes with the same communities share one set.
            joined: dict[frozenset[Community], frozenset[Community]] = {}
            for some in quick(carried, self._pieces):
                if some is None:
                    yield
                    continue
                for destination in some:
                    before = self._communities.get(destination, NO_COMMUNITIES)
                    after = joined.get(before)
                    if after is None:
                        after = joined[before] = before | {value}
                    self._communities[destination] = after


def _attributes(communities: frozenset[Community], preference: int | None) -> Attributes:
    return Attributes(
        communities=tuple(sorted([c for c in communities if isinstance(c, int)])),
        large_communities=tuple(sorted([c for c in communities if not isinstance(c, int)])),
        local_preference=preference,
        med=MED,
    )
