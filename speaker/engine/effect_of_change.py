"""What a changed peer configuration does to the session: the table, as a pure function.

=============================================  ==========================================
what changed                                   what happens
=============================================  ==========================================
address, interface, peer AS                    another peer: removed and added
route set, export, import, policies, limits    only differences are told; no reset
connect-retry and idle-hold time, name         nothing that runs
everything else                                reset, with the reason on show
=============================================  ==========================================
"""

from __future__ import annotations

import enum
from typing import Final

from speaker.api import PeerConfig


class Effect(enum.Enum):
    """From the mildest to the hardest."""

    NONE = enum.auto()
    SOFT = enum.auto()
    RESET = enum.auto()
    REPLACE = enum.auto()


QUIET: Final = frozenset({"name", "connect_retry_time", "idle_hold_time"})
SOFT: Final = frozenset({"route_set", "export", "export_policy", "import_", "maximum_prefixes"})


def effect_of(before: PeerConfig, after: PeerConfig) -> Effect:
    """Return what a change of configuration does."""
    if before.identity != after.identity:
        return Effect.REPLACE
    changed = {
        field
        for field in PeerConfig.__struct_fields__
        if getattr(before, field) != getattr(after, field)
    }
    if changed - QUIET - SOFT:
        return Effect.RESET
    return Effect.SOFT if changed & SOFT else Effect.NONE
