"""Policy as values: which routes pass, and what is changed on the way, per peer and direction.

A policy is a list of terms, tried in order. The first that matches and accepts or rejects decides; a
term with the action "next" makes its changes and goes on, and later terms see what it changed. What
no term decides is rejected (RFC 8212). Communities are text, so that a policy reads like what it is:
``65001:80`` and ``no-export`` (RFC 1997), ``65001:1:2`` (RFC 8092), ``0x`` and 16 hex digits (RFC
4360); in a match or a removal, ``*`` stands for any number: ``65001:*``.

Nothing here is evaluated: `speaker.rib.policy` does that.
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
    """What a route has to be; every part that is given has to hold, an empty one always does."""

    prefixes: tuple[PrefixRule, ...] | None = None
    """Within one of them; the empty list matches nothing."""
    families: tuple[Family, ...] = ()
    communities: tuple[str, ...] = ()
    """Has at least one of them."""
    all_communities: tuple[str, ...] = ()
    """Has every one of them."""
    as_path: str | None = None
    """The whole path: AS numbers, ranges ``64512..65534``, ``?`` for one AS, ``*`` for any number of
    them. ``* 65010`` is what AS 65010 originates, an empty text what begins in our own AS. An AS_SET
    is one hop, that of any of its members; confederation segments are not looked at."""
    as_path_min: int | None = None
    as_path_max: int | None = None
    """Numbers of hops, as the decision process counts them."""
    origin: tuple[int, ...] = ()
    """0 IGP, 1 EGP, 2 incomplete."""
    received: bool | None = None
    """True: from a peer. False: of this router."""
    peers: tuple[str, ...] = ()
    """From one of these peers, by name."""


class Set(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed; None and empty leave things as they are."""

    local_preference: int | None = None
    med: int | None = None
    add_med: int = 0
    """Added to the MED (0 where there is none), which stays within 0 and 4294967295."""
    remove_med: bool = False
    communities: tuple[str, ...] | None = None
    """In place of all standard, large and extended communities."""
    add_communities: tuple[str, ...] = ()
    remove_communities: tuple[str, ...] = ()
    """Removed before others are added."""
    prepend: tuple[int, ...] = ()
    """AS numbers in front of the path, the first one first."""
    next_hop: str | None = None
    """An address, ``self`` for our own on the session, or ``unchanged``."""


Action = Literal["accept", "reject", "next"]


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with the routes that match."""

    name: str = ""
    match: Match = Match()
    set: Set = Set()
    action: Action = "accept"


class Policy(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Terms in order, and what happens to what none of them decides."""

    name: str = ""
    terms: tuple[Term, ...] = ()
    default: Literal["accept", "reject"] = "reject"
