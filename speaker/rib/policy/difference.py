"""Prefixes that a changed import policy can decide differently: of rules that came or went.

So a policy with one more selector is applied to the routes that the selector covers, and not to a whole
table (`speaker.rib.adj_in`).
"""

from __future__ import annotations

from msgspec.structs import replace

from speaker.api import Match, Policy, PrefixRule, Set, Term
from speaker.rib.policy.prefixes import PrefixList


def changed_prefixes(before: Policy, after: Policy) -> PrefixList | None:
    """Return a list of the prefixes whose decision may differ; None is all of them.

    Only for policies that change no attribute: the routes of others are replaced by equal ones.
    """
    if before.default != after.default or len(before.terms) != len(after.terms):
        return None
    rules: set[PrefixRule] = set()
    for old, new in zip(before.terms, after.terms, strict=True):
        if old.set != Set() or new.set != Set():
            return None
        if old.match.prefixes == new.match.prefixes:
            if _besides(old) != _besides(new):
                return None
            continue
        if (
            old.match.prefixes is None
            or new.match.prefixes is None
            or _besides(old) != _besides(new)
        ):
            return None
        rules |= set(old.match.prefixes) ^ set(new.match.prefixes)
    return PrefixList(sorted(rules, key=str))


def accepts_more(before: Policy, after: Policy) -> bool:
    """Return whether a route that one policy rejects may be accepted by the next one."""
    if before.default != after.default or len(before.terms) != len(after.terms):
        return True
    for old, new in zip(before.terms, after.terms, strict=True):
        if _besides(old) != _besides(new) or old.set != new.set:
            return True
        rules, others = old.match.prefixes, new.match.prefixes
        if rules == others:
            continue
        if rules is None or others is None or new.action == "next":
            return True
        if set(others) - set(rules) if new.action == "accept" else set(rules) - set(others):
            return True
    return False


def _besides(term: Term) -> tuple[Match, str]:
    """Return what decides of a term, except for its prefixes."""
    return replace(term.match, prefixes=None), term.action
