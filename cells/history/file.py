"""The history on disk: two files of lines in the state directory, of which the older one is replaced.

A line is appended once a second at most, and never changed: a process that is killed loses that second,
and a line that a crash has cut is skipped. Each process begins with a line that has its version, also
behind lines of another version, or zeros of a crash.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from cells.api.history import HistoryItem
from cells.history.log import HistoryLog
from cells.hive import Health
from cells.hive.jobs import WITHOUT_END, Jobs
from cells.hive.lifecycle import Lifecycle
from cells.options import HistoryOptions
from cells.state.state_files import MEMORY_ONLY, StateDirectory
from resources.errors import INVALID_JSON
from resources.state_file import StateFileError, read

HEAD: Final = b'{"format":"waggle-history/1"}'
HEAD_START: Final = b'{"format":'
FILE: Final = "history.jsonl"
OLDER: Final = "history.older.jsonl"
WRITE_SECONDS: Final = 1.0
MOST_OCTETS: Final = 4 * 1024 * 1024
"""Of a file, after which it becomes the older one."""
MOST_WAITING: Final = 5000
"""Entries that wait to be written; a disk that hangs costs the oldest ones."""

log = structlog.get_logger("waggle.history")


class HistoryFile:
    """Writes the entries of the log, and reads the entries of earlier processes."""

    def __init__(
        self,
        directory: StateDirectory,
        options: HistoryOptions,
        entries: HistoryLog,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        self._directory = directory.path if options.on_disk else None
        self._entries = entries
        self._limit = options.entries
        self._health = health.scope("file")
        self._waiting: deque[HistoryItem] = deque(maxlen=MOST_WAITING)
        self._trouble = ""
        self._has_begun = False
        if self._directory is None:
            off = "kept in memory only (--history-on-disk is not set)"
            self._health.ok(MEMORY_ONLY if options.on_disk else off)
            return
        entries.added.subscribe(self._waiting.append)
        lifecycle.append("history", start=self._restore, stop=self._write)
        jobs.add("write", self._run, policy=WITHOUT_END)

    async def _restore(self) -> None:
        assert self._directory is not None  # noqa: S101  otherwise it is not appended
        former = await asyncio.to_thread(stored, self._directory, self._limit)
        if former.items:
            self._entries.restore(former.items)
        reasons = [f"{name}: {reason}" for name, reason in former.unread.items()]
        self._report(f"the history is not read: {'; '.join(reasons)}" if reasons else "")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self._write()

    async def _write(self) -> None:
        if not self._waiting or self._directory is None:
            return
        items = list(self._waiting)
        self._waiting.clear()
        # Of an entry that counted several changes the last state is enough.
        last = {(i.kind, i.name, i.route_set, i.first_time or i.event_time): i for i in items}
        try:
            begin = not self._has_begun
            await asyncio.to_thread(append, self._directory, list(last.values()), begin=begin)
        except OSError as error:
            self._report(f"the history is not written: {_reason(error)}")
        else:
            self._has_begun = True
            self._report("")

    def _report(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning("the history is not kept", event_name="history.unkept", reason=trouble)
        self._trouble = trouble
        if trouble:
            self._health.degraded(trouble)
        else:
            self._health.ok(f"kept in {self._directory}")


def append(directory: Path, items: Iterable[HistoryItem], *, begin: bool = False) -> None:
    """Append entries, the first ones of a process with ``begin``. Blocking; raises `OSError`."""
    path = directory / FILE
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
        size = file.tell()
        # Behind a line that was cut, the next one is whole again.
        head = (b"\n" if size else b"") + (HEAD + b"\n" if begin or not size else b"")
        file.write(b"".join(chain((head,), map(_line, items))))
    if size > MOST_OCTETS:
        path.replace(directory / OLDER)


class Stored(NamedTuple):
    """The entries of earlier processes."""

    items: Sequence[HistoryItem]
    """The last ones of both files, the oldest first."""
    unread: Mapping[str, str]
    """The files that cannot be read, or that another user can write, with the reason."""


def stored(directory: Path, limit: int) -> Stored:
    """Read both files: an unreadable file does not hide the other.

    Lines that are cut, of another version or changed by hand are skipped.
    """
    last: deque[HistoryItem] = deque(maxlen=limit)
    unread = {}
    for name in (OLDER, FILE):
        try:
            octets = read(directory / name)
        except (OSError, StateFileError) as error:
            unread[name] = _reason(error)
            continue
        if octets is not None:
            last.extend(_decoded(octets))
    return Stored(list(last), unread)


def _decoded(octets: bytes) -> Iterator[HistoryItem]:
    is_known = False
    decoder = msgspec.json.Decoder(HistoryItem)
    before: HistoryItem | None = None
    for line in octets.split(b"\n"):
        if line.startswith(HEAD_START):
            is_known = line == HEAD
        if not is_known or line == HEAD:
            continue
        try:
            item = decoder.decode(line)
        except INVALID_JSON:
            continue
        # With further equal changes an entry is written again.
        if before is not None and not _continues(before, item):
            yield before
        before = item
    if before is not None:
        yield before


def _continues(before: HistoryItem, item: HistoryItem) -> bool:
    return (
        item.first_time is not None
        and item.first_time == (before.first_time or before.event_time)
        and (item.kind, item.name, item.route_set) == (before.kind, before.name, before.route_set)
    )


def _line(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
