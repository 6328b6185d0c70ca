"""Why a received route is not in the kernel, as one word and a sentence."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Reason(enum.StrEnum):
    """The word."""

    IMPORT_POLICY = "ImportPolicy"
    """The import policy of the peer does not accept the prefix."""
    ALWAYS_BLOCK = "AlwaysBlock"
    """An option of the agent rejects it from all peers."""
    AS_LOOP = "ASLoop"
    """The path has been at this router, or in its AS, before."""
    INELIGIBLE = "Ineligible"
    """The speaker does not use the path for another reason."""
    MALFORMED = "Malformed"
    """The UPDATE was malformed: the route is withdrawn (RFC 7606)."""
    FAMILY = "Family"
    """The session does not carry prefixes of the family."""
    NEXT_HOP = "NextHop"
    """The next hop cannot be resolved."""
    LOCAL = "Local"
    """The prefix is this node's own."""
    NOT_BEST = "NotBest"
    """Another path is better, or is installed alone."""
    MARTIAN = "Martian"
    """No router forwards packets to such addresses."""
    DEFAULT_ROUTE = "DefaultRoute"
    """No rule names the default route."""
    NO_VRF = "NoVRF"
    """The node does not have the VRF, so there is no table."""
    TABLE_SHARED = "TableShared"
    """Routes of another VRF stand in the table of the VRF."""
    WITHHELD = "Withheld"
    """With it the node did not reach its cluster, and it is not approved yet."""
    OFF = "Off"
    """Routes of this instance are not installed."""


def shared_table(vrf: str, holder: str) -> str:
    """Return the reason that no route of a VRF is installed: another VRF has its table."""
    other = f"VRF {holder}" if holder else "default VRF"
    return f"VRF {vrf} has the table of the {other}, whose routes stand there: give it its own"


class NotInstalled(NamedTuple):
    """Why a route is not installed."""

    reason: Reason
    message: str
    """A sentence without its end, for people."""
