"""Keeps the last good state of a dialect over restarts.

One file for each dialect in the state directory, with its node and a checksum. A file that is damaged,
of another node or of a later release is not used, which health reports. No file has a password.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from cells.hive import Group, Health
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.node import ThisNode
from cells.options import ClaimsOptions
from reconcilers.dialect import Dialect
from resources.snapshot import SnapshotError, read, write

FORMAT: Final = "waggle-dialect-state/1"
MEMORY_ONLY: Final = "kept in memory only (--state-directory is not set)"

log = structlog.get_logger("waggle.dialects")


class _Head(msgspec.Struct, frozen=True):
    """The first line of a file; the rest is the dialect's."""

    format: str
    node: str
    dialect: str
    crc32: int


class DialectStates:
    """Reads the states at start, and writes them when they change."""

    def __init__(
        self,
        options: ClaimsOptions,
        node: ThisNode,
        dialects: Group[Dialect],
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        self._directory = None if options.directory is None else Path(options.directory)
        self._node = node.name
        self._dialects = {dialect.name: dialect for dialect in dialects if dialect.remembers}
        self._health = {name: health.scope(name) for name in self._dialects}
        self._written: dict[str, Any] = {}
        """What each file has, by dialect; compared by identity."""
        self._changed = asyncio.Event()
        self._lock = threading.Lock()
        lifecycle.append("dialect states", start=self._start, stop=self._write)
        if self._directory is not None and self._dialects:
            jobs.add("dialect-states", self._run)

    def keep(self) -> None:
        """Note that the dialects were compiled: their state may be another one."""
        if any(d.memory is not self._written.get(name) for name, d in self._dialects.items()):
            self._changed.set()

    def path(self, dialect: str) -> Path | None:
        """Return the file of a dialect."""
        return None if self._directory is None else self._directory / f"{dialect}.state"

    async def _start(self) -> None:
        for name, dialect in self._dialects.items():
            path = self.path(name)
            if path is None:
                self._health[name].ok(MEMORY_ONLY)
                continue
            try:
                octets = await asyncio.to_thread(read, path)
                if octets is not None:
                    dialect.remember(decode(octets, self._node, name))
                    self._written[name] = dialect.memory
                self._health[name].ok(f"kept in {path}")
            except (OSError, ValueError, SnapshotError) as error:
                self._complain(name, "cannot be used", "dialects.state-unusable", error)

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._write()

    async def _write(self) -> None:
        for name, dialect in self._dialects.items():
            path, memory = self.path(name), dialect.memory
            if path is None or memory is None or memory is self._written.get(name):
                continue
            try:
                await asyncio.to_thread(self._replace, path, name, memory)
            except OSError as error:
                self._complain(name, "cannot be written", "dialects.state-unwritten", error)
                continue
            self._written[name] = memory
            self._health[name].ok(f"kept in {path}")

    def _replace(self, path: Path, dialect: str, memory: Any) -> None:  # noqa: ANN401
        octets = encode(memory.encode(), self._node, dialect)
        # A stop cancels the job, but not a write that its thread has begun.
        with self._lock:
            write(path, [octets])

    def _complain(self, dialect: str, what: str, event: str, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        path = self.path(dialect)
        self._health[dialect].degraded(f"{path} {what}: {reason}")
        log.warning(
            "the state of a dialect is not kept",
            event_name=event,
            dialect=dialect,
            file=str(path),
            reason=reason,
        )


def encode(octets: bytes, node: str, dialect: str) -> bytes:
    """Return the content of a file with a dialect's state."""
    head = _Head(FORMAT, node, dialect, zlib.crc32(octets))
    return msgspec.json.encode(head) + b"\n" + octets


def decode(octets: bytes, node: str, dialect: str) -> bytes:
    """Return the dialect's part. Raises `SnapshotError` for anything else than its own file."""
    line, end, rest = octets.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SnapshotError("it does not begin as it should") from None
    if head.format != FORMAT:
        raise SnapshotError(f"it is of another format: {head.format[:64]!r}")
    if head.node != node:
        raise SnapshotError(f"it is of another node: {head.node[:64]!r}")
    if head.dialect != dialect:
        raise SnapshotError(f"it is of another dialect: {head.dialect[:64]!r}")
    if not end or head.crc32 != zlib.crc32(rest):
        raise SnapshotError("its checksum is another one")
    return rest
