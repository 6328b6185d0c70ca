"""The claims cell: keeps over restarts which dialect owns a contested address, port or name.

Without a state directory, or with a file that cannot be read, a restart decides by the age of the
objects (`reconcilers.intent.arbitrate`).
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Final

import msgspec
import structlog

from cells.dialect_states import DialectStates
from cells.hive import Health, Wiring
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.options import ClaimsOptions
from reconcilers.intent.arbitrate import PEER, Claim, Owners
from resources.snapshot import SnapshotError, read, write

FILE: Final = "claims.json"
FORMAT: Final = "waggle-claims/1"

log = structlog.get_logger("waggle.claims")


class StateDirectory:
    """The directory on the node for what a restart has to remember."""

    def __init__(self, options: ClaimsOptions) -> None:
        self.path = None if options.directory is None else Path(options.directory)


class _Stored(msgspec.Struct, frozen=True):
    """The file: each claim with the dialect that owns it."""

    format: str
    claims: list[tuple[Claim, str]]


class ClaimStore:
    """Reads the claims at start and writes them when they change."""

    def __init__(
        self, directory: StateDirectory, health: Health, lifecycle: Lifecycle, jobs: Jobs
    ) -> None:
        self._path = None if directory.path is None else directory.path / FILE
        self._health = health
        self.owners: Owners = {}
        """The owning dialect of each claim."""
        self._written: Owners = {}
        self.remembered = 0
        """Peers of the last run, until this one has had peers, too."""
        self._changed = asyncio.Event()
        self._lock = threading.Lock()
        lifecycle.append("claims", start=self._start, stop=self._write)
        if self._path is not None:
            jobs.add("write", self._run)

    def keep(self, owners: Owners) -> None:
        """Accept the present claims; without any, those of the last run are kept until there are."""
        if self.remembered and not owners:
            return
        self.remembered = 0
        if owners != self.owners:
            self.owners = owners
            self._changed.set()

    async def _start(self) -> None:
        if self._path is None:
            self._health.ok("kept in memory only (--state-directory is not set)")
            return
        try:
            octets = await asyncio.to_thread(read, self._path)
            self.owners = self._written = {} if octets is None else decode(octets)
            self.remembered = sum(claim[0] == PEER for claim in self.owners)
            self._health.ok(f"kept in {self._path}")
        except (OSError, ValueError, SnapshotError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._health.degraded(f"{self._path} cannot be read: {reason}")
            log.warning(
                "claims cannot be read",
                event_name="claims.unreadable",
                file=str(self._path),
                reason=reason,
            )

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._write()

    async def _write(self) -> None:
        if self._path is None or self.owners == self._written:
            return
        owners = self.owners
        try:
            await asyncio.to_thread(self._replace, encode(owners))
        except OSError as error:
            self._health.degraded(f"{self._path} cannot be written: {error.strerror}")
            log.warning(
                "claims cannot be written",
                event_name="claims.unwritten",
                file=str(self._path),
                reason=error.strerror,
            )
            return
        self._written = owners
        self._health.ok(f"kept in {self._path}")

    def _replace(self, octets: bytes) -> None:
        assert self._path is not None  # noqa: S101 - else nothing is written
        # A stop cancels the job, but not a write that its thread has begun.
        with self._lock:
            write(self._path, [octets])


def encode(owners: Owners) -> bytes:
    """Encode claims as the file has them."""
    return msgspec.json.encode(_Stored(FORMAT, sorted(owners.items())))


def decode(octets: bytes) -> dict[Claim, str]:
    """Decode a file. Raises ValueError for everything that `encode` did not write."""
    stored = msgspec.json.decode(octets, type=_Stored)
    if stored.format != FORMAT:
        raise ValueError(f"it is of another format: {stored.format[:64]!r}")
    return dict(stored.claims)


WIRING = Wiring(
    provides=(StateDirectory, ClaimStore, DialectStates),
)
