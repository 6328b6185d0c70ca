"""The configuration of a measured router, and its process.

The configurations are equivalent: one AS, one listening address, passive neighbours by address and AS,
IPv4 unicast, all routes imported, all or no routes exported, originated prefixes.
"""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from bench.speed.arena import Arena, Usage, at_work, memory_mb, processes, usage
from tests.support.daemon import Daemon
from tests.support.wait import NotReadyError, eventually

READY_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Neighbor:
    """One session."""

    address: str
    asn: int
    export: bool = True
    """Whether all routes are exported to it, or none."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The configuration of one router."""

    asn: int
    address: str
    neighbors: tuple[Neighbor, ...]
    originate: tuple[str, ...] = field(default=())
    hold_time: int = 240
    switched: str = "203.0.113.7/32"
    """The one prefix that `Contender.switch` announces and withdraws."""


class Contender(abc.ABC):
    """A router in the arena; a context manager that ends it."""

    name: ClassVar[str]
    transit: ClassVar[bool] = True
    """Whether routes from one peer are advertised to others."""
    needs_nudge: ClassVar[bool] = False
    """Whether it needs input to continue with pending work."""
    originates: ClassVar[bool] = True
    """Whether prefixes can be originated; otherwise a peer has to announce them."""
    switches: ClassVar[tuple[str, ...]] = ()
    """The interfaces by which it can announce one prefix."""

    def __init__(self, setting: Setting, arena: Arena) -> None:
        self.setting = setting
        self.arena = arena
        self.directory = arena.directory
        self.daemon = Daemon(
            self.name,
            self.command(),
            log=self.directory / "log",
            namespace=arena.daemon_side,
            environment=self.environment(),
        )

    @classmethod
    @abc.abstractmethod
    def missing(cls) -> str | None:
        """Return the name of the missing program or library, or None."""

    @classmethod
    @abc.abstractmethod
    def version(cls) -> str:
        """Return name and version."""

    @abc.abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the command line, in the foreground."""

    @abc.abstractmethod
    def configuration(self) -> Mapping[str, str]:
        """Return the files that it needs, by name."""

    def environment(self) -> Mapping[str, str]:
        """Return environment variables."""
        return {}

    def ready(self) -> bool:
        """Whether it has read its configuration and listens."""
        return self._listens()

    def switch(self, way: str, *, announce: bool) -> None:
        """Announce or withdraw the one prefix, in one of the ways of `switches`."""
        raise ValueError(f"{self.name} has no interface {way}")

    def _listens(self) -> bool:
        # Read from the kernel's list in its namespace: a connection would be a session.
        wanted = f"{int.from_bytes(socket.inet_aton(self.setting.address), 'little'):08X}:00B3"
        anywhere = "00000000:00B3"
        for name in ("tcp", "tcp6"):
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{self.daemon.pid}/net/{name}").read_text().splitlines():
                    fields = line.split()
                    if fields[3] == "0A" and fields[1].endswith((wanted, anywhere)):
                        return True
        return False

    def __enter__(self) -> Self:
        """Start it and wait until it is ready."""
        for name, text in self.configuration().items():
            (self.directory / name).write_text(text)
        self.daemon.start()
        try:
            eventually(self._must_be_ready, within=READY_SECONDS, context=self.daemon.tail)
        except BaseException:
            self.daemon.kill()
            raise
        return self

    def _must_be_ready(self) -> None:
        self.daemon.check()
        if not self.ready():
            raise NotReadyError(f"{self.name} is not ready")

    def __exit__(self, *_: object) -> None:
        """Kill its processes."""
        for pid in reversed(self.pids()):
            with contextlib.suppress(ProcessLookupError):
                # Its own processes, by id; the first one is waited for.
                if pid != self.daemon.pid:
                    os.kill(pid, signal.SIGKILL)
        self.daemon.kill()

    def pids(self) -> list[int]:
        """Return its processes."""
        return processes(self.daemon.pid)

    def usage(self) -> Usage:
        """Return the CPU seconds that it has used, and waited for."""
        return usage(self.pids())

    def cpu(self) -> float:
        """Return the CPU seconds that it has used."""
        return self.usage().cpu

    def at_work(self) -> bool:
        """Whether it runs or is runnable."""
        return at_work(self.pids())

    def peak_mb(self) -> float:
        """Return its peak resident memory."""
        return memory_mb(self.pids())

    def resident_mb(self) -> float:
        """Return its resident memory."""
        return memory_mb(self.pids(), "VmRSS")
