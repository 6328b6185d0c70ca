"""Real BGP routers, each behind the same few methods, for tests to read from *their* tables.

`KINDS` has every router that is known; which of them are installed is asked of each. The drivers
must never correct or fill in what a router says: what its table lacks is missing in the answer.
"""

from __future__ import annotations

from tests.support.routers.base import (
    FAMILIES,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    RouterSettings,
)
from tests.support.routers.bird import Bird
from tests.support.routers.frr import Frr
from tests.support.routers.gobgp import GoBGP

KINDS: dict[str, type[Router]] = {"bird": Bird, "frr": Frr, "gobgp": GoBGP}

__all__ = [
    "FAMILIES",
    "KINDS",
    "Bird",
    "Frr",
    "GoBGP",
    "PeerSettings",
    "Router",
    "RouterPeer",
    "RouterRoute",
    "RouterSettings",
]
