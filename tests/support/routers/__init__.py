"""Real BGP routers, each behind the same few methods, for tests to read from *their* tables.

`KINDS` has every supported router; each driver checks whether its router is installed. A driver must
never correct or complete a router's output: what its table lacks is missing in the result.
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
from tests.support.routers.exabgp import ExaBGP
from tests.support.routers.frr import Frr
from tests.support.routers.gobgp import GoBGP
from tests.support.routers.openbgpd import OpenBGPD

KINDS: dict[str, type[Router]] = {
    driver.kind: driver for driver in (Bird, Frr, GoBGP, OpenBGPD, ExaBGP)
}

ALL_ROUND = ("bird", "frr", "gobgp")
"""Routers that are tested with all features of the agent: passwords, RFC 8950, best paths."""

__all__ = [
    "ALL_ROUND",
    "FAMILIES",
    "KINDS",
    "Bird",
    "ExaBGP",
    "Frr",
    "GoBGP",
    "OpenBGPD",
    "PeerSettings",
    "Router",
    "RouterPeer",
    "RouterRoute",
    "RouterSettings",
]
