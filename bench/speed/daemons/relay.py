"""`bench.speed.relay`, no router: the bound for programs in Python."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.speed.daemons.base import Contender


class Relay(Contender):
    """Forwards messages unread to all peers."""

    name = "relay"
    loop: Sequence[str] = ()

    @classmethod
    def missing(cls) -> str | None:
        return None

    @classmethod
    def version(cls) -> str:
        return "a relay of a hundred lines of Python that reads no route"

    def command(self) -> Sequence[str | Path]:
        program = Path(__file__).resolve().parents[1] / "relay.py"
        return [sys.executable, program, self.setting.address, str(self.setting.asn), *self.loop]

    def configuration(self) -> Mapping[str, str]:
        return {}


class UvloopRelay(Relay):
    """The same on the transports that Waggle has."""

    name = "relay-uvloop"
    loop = ("uvloop",)

    @classmethod
    def version(cls) -> str:
        return "the same relay on uvloop"
