"""The measured routers, one per module."""

from __future__ import annotations

from bench.speed.daemons.base import Contender, Neighbor, Setting
from bench.speed.daemons.bird import Bird
from bench.speed.daemons.exabgp import ExaBGP
from bench.speed.daemons.frr import Frr
from bench.speed.daemons.gobgp import GoBGP
from bench.speed.daemons.openbgpd import OpenBGPD
from bench.speed.daemons.relay import Relay, UvloopRelay
from bench.speed.daemons.waggle import Compiled, Pure, Waggle

CONTENDERS: dict[str, type[Contender]] = {
    daemon.name: daemon
    for daemon in (
        Waggle,
        Pure,
        Compiled,
        Bird,
        Frr,
        OpenBGPD,
        GoBGP,
        ExaBGP,
        Relay,
        UvloopRelay,
    )
}

__all__ = ["CONTENDERS", "Contender", "Neighbor", "Setting"]
