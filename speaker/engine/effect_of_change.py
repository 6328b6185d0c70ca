"""The effect of a changed peer configuration on the session: the table, as a pure function.

=============================================  ==========================================
changed field                                  effect
=============================================  ==========================================
address, interface, peer AS                    another peer: removed and added
route set, export, import, policies, limits    the difference is sent or applied; no reset
import of routes that were only counted        ROUTE-REFRESH; a reset where the peer has none
next hops                                      routes are advertised again; no reset
connect-retry and idle-hold time, name         none until the next attempt
BFD                                            none: it is carried for a BFD process
any other                                      reset; the status shows the reason
=============================================  ==========================================

A changed instance keeps its sessions, unless it is another router (`is_same_router`).

The new settings permit all routes that are kept without a session (RFC 4724).
"""

from __future__ import annotations

import enum
from operator import attrgetter
from typing import Final

from speaker.api import InstanceConfig, PeerConfig


class Effect(enum.Enum):
    """The effect on the session, from the least to the greatest."""

    NONE = enum.auto()
    SOFT = enum.auto()
    """Only differences are sent to the peer, or applied to its received routes."""
    RESET = enum.auto()
    REPLACE = enum.auto()


WITHOUT_EFFECT: Final = frozenset({"name", "connect_retry_time", "idle_hold_time", "bfd"})
SOFT: Final = frozenset(
    {
        "route_set",
        "export",
        "export_policy",
        "import_",
        "keep_received",
        "maximum_prefixes",
        "next_hop_ipv4",
        "next_hop_ipv6",
        "default_next_hop_ipv4",
        "default_next_hop_ipv6",
    }
)

OF_SAME_ROUTER: Final = frozenset({"selection_deferral_time", "originate", "imports"})
"""Fields of an instance that leave all sessions as they are."""

_OF_OTHER_ROUTER: Final = attrgetter(
    *(field for field in InstanceConfig.__struct_fields__ if field not in OF_SAME_ROUTER)
)


def is_same_router(before: InstanceConfig, after: InstanceConfig) -> bool:
    """Return whether a changed instance leaves all sessions as they are; otherwise all are reset."""
    return bool(_OF_OTHER_ROUTER(before) == _OF_OTHER_ROUTER(after))


def effect_of(before: PeerConfig, after: PeerConfig) -> Effect:
    """Return the effect of a change of configuration."""
    if before.identity != after.identity:
        return Effect.REPLACE
    changed = {
        field
        for field in PeerConfig.__struct_fields__
        if getattr(before, field) != getattr(after, field)
    }
    if changed - WITHOUT_EFFECT - SOFT:
        return Effect.RESET
    return Effect.SOFT if changed & SOFT else Effect.NONE
