"""Policies of the router's YAML file, decoded strictly and converted to the speaker's policies.

Resolves the names of prefix lists and policies; evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from speaker.api import Match, Policy, PrefixRule, Set, Term
from speaker.rib.policy import PrefixList as CompiledPrefixes
from waggle.router_config.file_values import parse_family

Number = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]
_ORIGINS = {"igp": 0, "egp": 1, "incomplete": 2}


class _Value(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    pass


class PrefixRange(_Value, frozen=True):
    """A prefix and a range of prefix lengths."""

    prefix: str
    ge: int | None = None
    le: int | None = None


PrefixList = list[str | PrefixRange]
Rules = tuple[PrefixRule, ...]


class MatchFile(_Value, frozen=True):
    """See `speaker.api.Match`."""

    prefix_list: str | None = None
    """The name of a list, or ..."""
    prefixes: PrefixList | None = None
    """... the list itself."""
    families: list[str] = []
    communities: list[str] = []
    all_communities: list[str] = []
    as_path: str | None = None
    as_path_min: int | None = None
    as_path_max: int | None = None
    origin: list[Literal["igp", "egp", "incomplete"]] = []
    source: Literal["received", "local"] | None = None
    neighbors: list[str] = []


class SetFile(_Value, frozen=True):
    """See `speaker.api.Set`."""

    local_preference: Number | None = None
    med: Number | None = None
    add_med: int = 0
    remove_med: bool = False
    communities: list[str] | None = None
    add_communities: list[str] = []
    remove_communities: list[str] = []
    prepend: list[Number] = []
    next_hop: str | None = None


class TermFile(_Value, frozen=True):
    """See `speaker.api.Term`."""

    name: str = ""
    match: MatchFile = MatchFile()
    set: SetFile = SetFile()
    action: Literal["accept", "reject", "next"] = "accept"


class PolicyFile(_Value, frozen=True):
    """See `speaker.api.Policy`."""

    terms: list[TermFile] = []
    default: Literal["accept", "reject"] = "reject"

    def policy(self, name: str, lists: Mapping[str, Rules]) -> Policy:
        """Return the policy for the speaker. Raises ValueError naming the key."""
        return Policy(
            name=name,
            terms=tuple(
                _term(f"policies.{name}.terms[{place}]", term, lists)
                for place, term in enumerate(self.terms)
            ),
            default=self.default,
        )


def _term(where: str, term: TermFile, lists: Mapping[str, Rules]) -> Term:
    match, changes = term.match, term.set
    prefixes = None if match.prefixes is None else prefix_rules(match.prefixes)
    if match.prefix_list is not None:
        if prefixes is not None:
            raise ValueError(f"{where}.match: prefixes and prefixList exclude each other")
        prefixes = lists.get(match.prefix_list)
        if prefixes is None:
            raise ValueError(f"{where}.match.prefixList: no prefix list {match.prefix_list!r}")
    try:
        families = tuple(map(parse_family, match.families))
    except ValueError as error:
        raise ValueError(f"{where}.match.families: {error}") from None
    return Term(
        name=term.name or where,
        match=Match(
            prefixes=prefixes,
            families=families,
            communities=tuple(match.communities),
            all_communities=tuple(match.all_communities),
            as_path=match.as_path,
            as_path_min=match.as_path_min,
            as_path_max=match.as_path_max,
            origin=tuple(_ORIGINS[origin] for origin in match.origin),
            received=None if match.source is None else match.source == "received",
            peers=tuple(match.neighbors),
        ),
        set=Set(
            local_preference=changes.local_preference,
            med=changes.med,
            add_med=changes.add_med,
            remove_med=changes.remove_med,
            communities=None if changes.communities is None else tuple(changes.communities),
            add_communities=tuple(changes.add_communities),
            remove_communities=tuple(changes.remove_communities),
            prepend=tuple(changes.prepend),
            next_hop=changes.next_hop,
        ),
        action=term.action,
    )


def prefix_rules(prefixes: PrefixList) -> Rules:
    """Return a prefix list for the speaker."""
    return tuple(map(_rule, prefixes))


def check_prefixes(where: str, prefixes: PrefixList) -> None:
    """Check the prefixes of a list. Raises ValueError naming the invalid one."""
    for place, item in enumerate(prefixes):
        try:
            CompiledPrefixes((_rule(item),))
        except ValueError as error:
            raise ValueError(f"{where}[{place}]: {error}") from None


def _rule(item: str | PrefixRange) -> PrefixRule:
    if isinstance(item, str):
        return PrefixRule(item)
    return PrefixRule(item.prefix, item.ge, item.le)
