"""Policies as values: which routes are accepted, and how they are changed, per peer and direction.

A policy is a list of terms, evaluated in order. The first term that matches and accepts or rejects is
final; a term with the action "next" applies its changes and continues, and later terms see them. A
route that no term decides is rejected (RFC 8212). Communities are text, as in the RFCs: ``65001:80``
and ``no-export`` (RFC 1997), ``65001:1:2`` (RFC 8092), ``0x`` and 16 hex digits (RFC 4360); in a match
or a removal, ``*`` stands for any number: ``65001:*``.

Nothing is evaluated here, but in `speaker.rib.policy`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from speaker.nlri import Family


class PrefixRule(msgspec.Struct, frozen=True, order=True):
    """A prefix and the lengths of more specific prefixes that it covers (exact by default)."""

    prefix: str
    ge: int | None = None
    le: int | None = None


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a term; all that are set must hold, and without any every route matches."""

    prefixes: tuple[PrefixRule, ...] | None = None
    """Within one of them; the empty list matches nothing."""
    families: tuple[Family, ...] = ()
    communities: tuple[str, ...] = ()
    """Has at least one of them."""
    all_communities: tuple[str, ...] = ()
    """Has every one of them."""
    as_path: str | None = None
    """The whole path: AS numbers, ranges ``64512..65534``, ``?`` for one AS, ``*`` for any number of
    them. ``* 65010`` matches routes that AS 65010 originates, an empty text routes of the local AS. An
    AS_SET is one hop, that of any of its members; confederation segments are ignored."""
    as_path_min: int | None = None
    as_path_max: int | None = None
    """Numbers of hops, as in the decision process (RFC 4271 section 9.1.2.2)."""
    origin: tuple[int, ...] = ()
    """0 IGP, 1 EGP, 2 incomplete."""
    received: bool | None = None
    """True: received from a peer. False: a local route."""
    peers: tuple[str, ...] = ()
    """Received from one of these peers, by name."""


class Set(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a term; None and empty leave an attribute unchanged."""

    local_preference: int | None = None
    med: int | None = None
    add_med: int = 0
    """Added to the MED (0 where there is none); the sum stays within 0 and 4294967295."""
    remove_med: bool = False
    communities: tuple[str, ...] | None = None
    """Replaces all standard, large and extended communities."""
    add_communities: tuple[str, ...] = ()
    remove_communities: tuple[str, ...] = ()
    """Removed before ``add_communities`` are added."""
    prepend: tuple[int, ...] = ()
    """AS numbers to prepend to the path, the first one first."""
    next_hop: str | None = None
    """An address, ``self`` for the session's local address, or ``unchanged``."""


Action = Literal["accept", "reject", "next"]


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One term: its conditions, its changes and its action."""

    name: str = ""
    match: Match = Match()
    set: Set = Set()
    action: Action = "accept"


class PolicyDecision(msgspec.Struct, frozen=True):
    """The decision of a policy about one route, and the deciding term."""

    accepted: bool
    term: str = ""
    """The name of the term, or its number; empty where no term decides, but the default."""
    rule: PrefixRule | None = None
    """The prefix rule of the term that covers the prefix."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Terms in order, and the action for routes that none of them decides."""

    name: str = ""
    terms: tuple[Term, ...] = ()
    default: Literal["accept", "reject"] = "reject"
