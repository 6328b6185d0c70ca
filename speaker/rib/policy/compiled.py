"""Compiled policies: terms in order, applied to a path once, whatever number of prefixes has it.

Only prefix lists depend on the prefix. The lists that contain it are a bit mask; a path with a mask
has one result, which is cached while the path lives. The result is a new `Path` of the same source,
or the same path if the policy does not change it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from speaker.api import (
    Import,
    InvalidConfig,
    Match,
    Policy,
    PolicyDecision,
    Set,
    Term,
    check_asn,
    check_next_hop,
)
from speaker.attribute import PathAttributes, hop_count, prepend
from speaker.nlri import Family
from speaker.rib.path import (
    MED_SET,
    NEXT_HOP_KEPT,
    NEXT_HOP_SELF,
    NEXT_HOP_SET,
    Path,
    Source,
)
from speaker.rib.policy.as_path import AsPathPattern
from speaker.rib.policy.communities import (
    Communities,
    communities_of,
    exact,
    joined,
    pattern,
    without,
)
from speaker.rib.policy.prefixes import PrefixList, prefix_list

_LARGEST: Final = 0xFFFFFFFF
Test = Callable[[Family, PathAttributes, Source], bool]
Change = Callable[[PathAttributes], PathAttributes]


def compile_import(peer: str, rule: Import) -> CompiledPolicy | None:
    """Return the import policy of a peer, or None if all routes are accepted (RFC 8212: explicitly).

    Raises `InvalidConfig`.
    """
    if rule == "all":
        return None
    if rule == "none":
        return REJECT_ALL
    if isinstance(rule, Policy):
        return CompiledPolicy(rule, peer, "import")
    assert not isinstance(rule, str)  # noqa: S101  the two words are dealt with
    terms = (Term(match=Match(prefixes=rule)),)
    return CompiledPolicy(Policy(terms=terms), peer, "import")


def compile_export(peer: str, policy: Policy | None) -> CompiledPolicy | None:
    """Return the export policy of a peer, or None without one. Raises `InvalidConfig`."""
    return None if policy is None else CompiledPolicy(policy, peer, "export_policy")


class InvalidTerm(InvalidConfig):
    """An invalid term of a policy: its number, the field within it (``set.prepend``), and the rule."""

    def __init__(
        self, peer: str, field: str, number: int, term: Term, place: str, fault: str
    ) -> None:
        super().__init__("peer", peer, field, f"{term.name or f'term {number}'}: {place}: {fault}")
        self.number = number
        self.place = place
        self.fault = fault


class _InvalidField(Exception):  # noqa: N818  named after the fault
    """A field of a term, as a path, and the rule that it breaks."""

    def __init__(self, place: str, fault: str) -> None:
        super().__init__(f"{place}: {fault}")
        self.place = place
        self.fault = fault


@contextmanager
def _place(place: str) -> Iterator[None]:
    """Give errors of a value the field that has it."""
    try:
        yield
    except InvalidConfig as error:
        raise _InvalidField(place, error.rule) from None
    except ValueError as error:
        raise _InvalidField(place, str(error)) from None


@final
class CompiledPolicy:
    """A policy ready to be applied. Raises `InvalidTerm`."""

    __slots__ = (
        "_accepts_listed_only",
        "_default",
        "_lists",
        "_results",
        "_terms",
        "accepts_nothing",
        "policy",
    )

    def __init__(self, policy: Policy, peer: str, field: str) -> None:
        self.policy = policy
        self.accepts_nothing: Final = policy.default == "reject" and all(
            term.action != "accept" for term in policy.terms
        )
        """Whether every route is rejected."""
        self._accepts_listed_only: Final = policy.default == "reject" and all(
            term.action != "accept" or term.match.prefixes is not None for term in policy.terms
        )
        """Whether a prefix that is in no list is rejected, whatever its attributes."""
        self._default = policy.default == "accept"
        self._lists: list[PrefixList] = []
        self._terms: list[_CompiledTerm] = []
        self._results: WeakKeyDictionary[Path, dict[tuple[Family, int], Path | bool]] = (
            WeakKeyDictionary()
        )
        """Result by path, family and prefix lists: True is the path itself, False is rejected.

        A path as its own result would keep its weak key alive.
        """
        for index, term in enumerate(policy.terms):
            try:
                self._terms.append(self._compile(term))
            except _InvalidField as error:
                raise InvalidTerm(peer, field, index, term, error.place, error.fault) from None

    def _compile(self, term: Term) -> _CompiledTerm:
        bit = 0
        compiled: PrefixList | None = None
        if term.match.prefixes is not None:
            with _place("match.prefixes"):
                compiled = prefix_list(term.match.prefixes)
            if compiled not in self._lists:
                self._lists.append(compiled)
            bit = 1 << self._lists.index(compiled)
        return _CompiledTerm(term, bit, compiled)

    def matching_lists(self, family: Family, nlri: bytes) -> int:
        """Return the prefix lists that contain a prefix in wire form: a mask, one bit per list."""
        lists = 0
        for number, compiled in enumerate(self._lists):
            if compiled.covers(family, nlri):
                lists |= 1 << number
        return lists

    def group_by_matching_lists(
        self, family: Family, nlri: Sequence[bytes], skip: int = 0
    ) -> Iterable[tuple[int, Sequence[bytes]]]:
        """Group prefixes by `matching_lists`; ``skip`` octets (a path identifier) precede each."""
        groups: list[tuple[int, Sequence[bytes]]] = [(0, nlri)]
        for number, compiled in enumerate(self._lists):
            halves: list[tuple[int, Sequence[bytes]]] = []
            for mask, part in groups:
                matching, others = compiled.split(family, part, skip)
                if matching:
                    halves.append((mask | 1 << number, matching))
                if others:
                    halves.append((mask, others))
            groups = halves
        return groups

    def apply(self, path: Path, family: Family, lists: int) -> Path | None:
        """Return the path after policy, or None if it is rejected; ``lists`` as of its prefixes."""
        if not lists and self._accepts_listed_only:
            return None
        results = self._results.get(path)
        if results is None:
            results = self._results[path] = {}
        known = results.get((family, lists))
        if known is None:
            known = results[family, lists] = self._evaluate(path, family, lists)
        if isinstance(known, bool):
            return path if known else None
        return known

    def _evaluate(self, path: Path, family: Family, lists: int) -> Path | bool:
        attributes, overrides = path.attributes, path.overrides
        accepted = self._default
        for term in self._terms:
            if term.bit and not term.bit & lists:
                continue
            if not all(test(family, attributes, path.source) for test in term.tests):
                continue
            for change in term.changes:
                attributes = change(attributes)
            overrides = term.override(overrides)
            if term.action != "next":
                accepted = term.action == "accept"
                break
        if not accepted:
            return False
        if attributes == path.attributes and overrides == path.overrides:
            return True
        return Path(attributes, path.source, path.rejected, overrides)

    def decide(self, path: Path, family: Family, nlri: bytes) -> PolicyDecision:
        """Return which term decides about a route, and by which prefix rule: for people."""
        attributes = path.attributes
        for index, term in enumerate(self._terms):
            rule = None
            if term.prefixes is not None:
                rule = term.prefixes.first_match(family, nlri)
                if rule is None:
                    continue
            if not all(test(family, attributes, path.source) for test in term.tests):
                continue
            for change in term.changes:
                attributes = change(attributes)
            if term.action != "next":
                return PolicyDecision(term.action == "accept", term.name or f"term {index}", rule)
        return PolicyDecision(self._default)


@final
class _CompiledTerm:
    """One term: its tests, its changes and its action."""

    __slots__ = ("_next_hop", "_overrides", "action", "bit", "changes", "name", "prefixes", "tests")

    def __init__(self, term: Term, bit: int, prefixes: PrefixList | None) -> None:
        self.name = term.name
        self.prefixes = prefixes
        self.bit = bit
        self.action = term.action
        self.tests = tuple(_tests(term.match))
        self.changes = tuple(_changes(term.set))
        self._next_hop = term.set.next_hop
        touches_med = term.set.med is not None or term.set.add_med or term.set.remove_med
        self._overrides = MED_SET if touches_med else 0

    def override(self, before: int) -> int:
        """Return the mask of attributes that the export rules must not change after this term."""
        after = before | self._overrides
        if self._next_hop is None:
            return after
        others = after & ~(NEXT_HOP_SET | NEXT_HOP_SELF | NEXT_HOP_KEPT)
        if self._next_hop == "self":
            return others | NEXT_HOP_SELF
        if self._next_hop == "unchanged" and not after & NEXT_HOP_SET:
            return others | NEXT_HOP_KEPT
        return others | NEXT_HOP_SET


def _tests(match: Match) -> Iterable[Test]:
    if match.families:
        families = frozenset(match.families)
        yield lambda family, _, __: family in families
    if match.received is not None:
        received = match.received
        yield lambda _, __, source: source.local is not received
    if match.peers:
        peers = frozenset(match.peers)
        yield lambda _, __, source: not source.local and source.name in peers
    if match.origin:
        origins = frozenset(match.origin)
        yield lambda _, attributes, __: attributes.origin in origins
    if match.communities:
        with _place("match.communities"):
            some = [pattern(text) for text in match.communities]
        yield lambda _, attributes, __: any(community.found_in(attributes) for community in some)
    if match.all_communities:
        with _place("match.all_communities"):
            every = [pattern(text) for text in match.all_communities]
        yield lambda _, attributes, __: all(community.found_in(attributes) for community in every)
    if match.as_path is not None:
        with _place("match.as_path"):
            compiled = AsPathPattern(match.as_path)
        yield lambda _, attributes, __: compiled.matches(attributes.as_path)
    if match.as_path_min is not None or match.as_path_max is not None:
        low = match.as_path_min or 0
        high = _LARGEST if match.as_path_max is None else match.as_path_max
        yield lambda _, attributes, __: low <= hop_count(attributes.as_path) <= high


def _changes(changes: Set) -> Iterable[Change]:
    if changes.local_preference is not None:
        preference = _within(changes.local_preference, "set.local_preference")
        yield lambda attributes: replace(attributes, local_preference=preference)
    if changes.remove_med:
        yield lambda attributes: replace(attributes, med=None)
    if changes.med is not None:
        med = _within(changes.med, "set.med")
        yield lambda attributes: replace(attributes, med=med)
    if changes.add_med:
        more = changes.add_med
        yield lambda attributes: replace(
            attributes, med=min(max((attributes.med or 0) + more, 0), _LARGEST)
        )
    if changes.communities is not None:
        with _place("set.communities"):
            instead = exact(changes.communities)
        yield lambda attributes: _with_communities(attributes, instead)
    if changes.remove_communities:
        with _place("set.remove_communities"):
            gone = [pattern(text) for text in changes.remove_communities]
        yield lambda attributes: _with_communities(
            attributes, without(communities_of(attributes), gone)
        )
    if changes.add_communities:
        with _place("set.add_communities"):
            added = exact(changes.add_communities)
        yield lambda attributes: _with_communities(
            attributes, joined(communities_of(attributes), added)
        )
    if changes.prepend:
        with _place("set.prepend"):
            for asn in changes.prepend:
                check_asn("route", "", "prepend", asn)
        asns = tuple(reversed(changes.prepend))
        yield lambda attributes: _prepended(attributes, asns)
    if changes.next_hop is not None and changes.next_hop not in ("self", "unchanged"):
        with _place("set.next_hop"):
            check_next_hop("route", "", "next_hop", changes.next_hop)
        octets = ipaddress.ip_address(changes.next_hop).packed
        yield lambda attributes: replace(attributes, next_hop=octets)


def _within(value: int, place: str) -> int:
    if not 0 <= value <= _LARGEST:
        raise _InvalidField(place, f"{value} is not within 0 to {_LARGEST}")
    return value


def _with_communities(attributes: PathAttributes, communities: Communities) -> PathAttributes:
    return replace(
        attributes,
        communities=communities.standard,
        large_communities=communities.large,
        extended_communities=communities.extended,
    )


def _prepended(attributes: PathAttributes, asns: Sequence[int]) -> PathAttributes:
    path = attributes.as_path
    for asn in asns:
        path = prepend(path, asn)
    return replace(attributes, as_path=path)


REJECT_ALL: Final = CompiledPolicy(Policy(), "", "")
"""The policy that rejects every route."""
