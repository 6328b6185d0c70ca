"""Files in which an agent keeps for the next one what is not in its objects, all with the same care.

Read before anything depends on them, and replaced whole, both in a thread and one at a time: a stop
cancels the job that writes, but not a write that its thread has begun. A file that cannot be used or
written stops nothing: health has it, and the log once.
"""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
import structlog

from cells.hive import Health, StartError
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.lock_file import lock, unlock
from cells.options import ClaimsOptions
from resources.errors import INVALID_JSON
from resources.state_file import StateFileError, read, write

MEMORY_ONLY: Final = "kept in memory only (--state-directory is not set)"

LOCK: Final = "lock"
"""The file of the state directory that its agent locks."""
IN_USE: Final = "another agent uses the state directory"

T = TypeVar("T")


class LogLines(NamedTuple):
    """The lines of the log about one file."""

    logger: str
    text: str
    unusable: str
    """The event of a file that cannot be used."""
    unwritten: str
    """The event of a file that cannot be written."""


class Format(Generic[T]):
    """The JSON of a file: the name of its format, and one member with all rows."""

    def __init__(self, name: str, member: str, rows: type[T]) -> None:
        self._name = name
        self._member = member
        self._type = msgspec.defstruct("Stored", [("format", str), (member, rows)], frozen=True)

    def encode(self, rows: T) -> bytes:
        """Encode rows as the file has them."""
        return msgspec.json.encode(self._type(self._name, rows))

    def decode(self, octets: bytes) -> T:
        """Decode a file. Raises ValueError for everything that `encode` did not write."""
        try:
            stored: Any = msgspec.json.decode(octets, type=self._type)
        except INVALID_JSON as error:
            raise ValueError(str(error)) from None
        if stored.format != self._name:
            raise ValueError(f"it is of another format: {stored.format[:64]!r}")
        rows: T = getattr(stored, self._member)
        return rows


class StateDirectory:
    """The directory on the node for what a restart has to remember.

    One agent at a time uses it: the agent that has locked its file ``lock``, until it ends. Another
    agent does not start. A directory that cannot be locked or written for another reason stops nothing.
    """

    def __init__(self, options: ClaimsOptions, lifecycle: Lifecycle) -> None:
        self.path = None if options.directory is None else Path(options.directory)
        self._descriptor: int | None = None
        self._taking = threading.Lock()
        lifecycle.append("state-directory", reserve=self.reserve, stop=self.release)

    async def reserve(self) -> None:
        """Lock the directory. Raises `StartError` if another agent has it."""
        if self.path is None:
            return
        try:
            await asyncio.to_thread(self._lock)
        except OSError as error:
            if error.strerror == IN_USE:
                raise StartError(
                    f"--state-directory: another agent uses {self.path}; stop it, or choose another "
                    "directory"
                ) from None
            # Each file has its trouble, and tries again with its next write.

    def file(self, name: str, lines: LogLines) -> StateFile | None:
        """Return a file, or None without a directory."""
        return None if self.path is None else StateFile(self.path / name, lines, self._lock)

    def _lock(self) -> None:
        """Lock the directory, unless that is done. Raises `OSError`, also if another agent has it."""
        assert self.path is not None  # noqa: S101  it has a file
        with self._taking:
            if self._descriptor is not None:
                return
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._descriptor = lock(self.path / LOCK)
            except BlockingIOError:
                raise OSError(errno.EBUSY, IN_USE) from None

    async def release(self) -> None:
        """Let another agent write."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None and self.path is not None:
            unlock(self.path / LOCK, descriptor)


class StateFile:
    """One file, with its present defect."""

    def __init__(
        self, path: Path, lines: LogLines, before_writing: Callable[[], None] = lambda: None
    ) -> None:
        """``before_writing`` runs in the thread; it raises OSError where nothing may be written."""
        self.path = path
        self._before_writing = before_writing
        self.trouble = ""
        """The present defect as a clause; empty without one."""
        self._lines = lines
        self._log = structlog.get_logger(lines.logger)
        self._lock = threading.Lock()

    async def read(self, decode: Callable[[bytes], T]) -> T | None:
        """Return the content; None without a file, and where it cannot be used.

        ``decode`` runs in the thread; it raises `StateFileError` or ValueError for another content.
        """
        try:
            return await asyncio.to_thread(self._read, decode)
        except (OSError, ValueError, StateFileError) as error:
            self._fail("is not used", self._lines.unusable, error)
            return None

    def _read(self, decode: Callable[[bytes], T]) -> T | None:
        octets = read(self.path)
        return None if octets is None else decode(octets)

    async def write(self, pieces: Iterable[bytes]) -> bool:
        """Replace the content; False where that fails. ``pieces`` are iterated in the thread."""
        try:
            await asyncio.to_thread(self._write, pieces)
        except OSError as error:
            self._fail("cannot be written", self._lines.unwritten, error)
            return False
        self.trouble = ""
        return True

    async def write_in_turns(self, pieces: Iterable[bytes]) -> bool:
        """Like `write`, for pieces that are made of tables: one per turn of the loop."""
        made: list[bytes] = []
        for piece in pieces:
            made.append(piece)
            await asyncio.sleep(0)
        return await self.write(made)

    def _write(self, pieces: Iterable[bytes]) -> None:
        with self._lock:
            self._before_writing()
            write(self.path, pieces)

    def _fail(self, what: str, event: str, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        trouble = f"{self.path} {what}: {reason}"
        if trouble != self.trouble:
            self.trouble = trouble
            self._log.warning(
                self._lines.text, event_name=event, file=str(self.path), reason=trouble
            )

    def report(self, health: Health) -> None:
        """Report to a scope of health that is the file's alone."""
        if self.trouble:
            health.degraded(self.trouble)
        else:
            health.ok(f"kept in {self.path}")


class KeptValue(Generic[T]):
    """A value that the next process has to know: in a file that is rewritten when the value changes."""

    def __init__(
        self,
        name: str,
        file: StateFile | None,
        *,
        value: Callable[[], T | None],
        encode: Callable[[T], bytes],
        take: Callable[[bytes], None],
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        """``value`` returns the same object until the value changes, and None where there is none.

        ``take`` decodes the value of an earlier process, and keeps it. Raises `StateFileError` or
        ValueError.
        """
        self._file = file
        self._value = value
        self._encode = encode
        self._take = take
        self._health = health
        self._written = value()
        self._changed = asyncio.Event()
        lifecycle.append(name, start=self._start, stop=self._write)
        if file is not None:
            jobs.add(f"write-{name}", self._run)

    def check(self) -> None:
        """Write the value if it has changed."""
        if self._value() is not self._written:
            self._changed.set()

    async def _start(self) -> None:
        if self._file is None:
            self._health.ok(MEMORY_ONLY)
            return
        await self._file.read(self._take)
        self._written = self._value()
        self._file.report(self._health)

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._write()

    async def _write(self) -> None:
        value = self._value()
        if self._file is None or value is None or value is self._written:
            return
        if await self._file.write(self._encode(whole) for whole in (value,)):
            self._written = value
        self._file.report(self._health)
