"""A watched directory of manifests as a source.

The kernel notifies of changed files, and only those are read again, once they are quiet. A periodic
scan of the whole tree finds changes without a notification (file systems without inotify, an overflow,
a directory that was deleted and created again), and confirms the loss of many objects.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, TypeVar

from reactivex import Observable
from reactivex.subject import Subject

from resources.kind import Kind, Kinds
from resources.manifests.catalog import Catalog
from resources.manifests.doubts import Cause, Doubts
from resources.manifests.files import (
    MISSING,
    ScanResult,
    Signature,
    as_text,
    is_manifest_name,
    scan,
    signature,
)
from resources.manifests.load import read_file
from resources.manifests.notifications import Change, Notifications
from resources.manifests.parse import Parsed
from resources.manifests.reparse import Reparser
from resources.manifests.settling import Settling
from resources.meta import Resource
from resources.source import Event, SourceProblem
from resources.streams import isolated

T = TypeVar("T", bound=Resource)

SCAN_INTERVAL_SECONDS: Final = 5.0
"""Between two scans of the whole tree."""
MISSING_SCAN_SECONDS: Final = 1.0
"""Between two scans while a directory does not exist."""
SMALL_TREE: Final = 100
"""Files and directories that are scanned in the loop: some 300 microseconds."""
LARGE_FILE: Final = 1 << 18
"""Octets of a file that is read in a thread: more than some milliseconds."""
JOIN_SECONDS: Final = 0.02
"""In which further changes of directories join the same scan."""


class ManifestsSource:
    """Reads files and directory trees, and follows their changes."""

    name = "manifests"

    def __init__(
        self,
        paths: Iterable[str | Path],
        kinds: Kinds,
        *,
        hold: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``hold``: seconds for which the loss of many objects has to last; 0: no wait."""
        self._roots = [str(Path(path)) for path in paths]
        self._root_files = {
            (os.path.dirname(root) or ".", os.path.basename(root)): root  # noqa: PTH119, PTH120
            for root in self._roots
        }
        """The roots by directory and name: some may be files."""
        self._clock = clock
        self.kinds = tuple(kinds)
        self._reparser = Reparser(kinds)
        self._catalog = Catalog(kinds)
        self._signatures: dict[str, Signature] = {}
        self._found = ScanResult({}, {}, {}, {})
        """The last scan."""
        self._causes: dict[str, Cause | None] = {}
        """The faults of directories of files that are gone, in the present pass."""
        self._settling = Settling()
        self._read_before: dict[str, tuple[Signature, Parsed | str]] = {}
        """Large files that have just been read."""
        self._doubts = Doubts(hold)
        self._missing: set[str] = set()
        """The roots that do not exist, or whose files have not been read since they do."""
        self._notifications = Notifications()
        self._events: dict[str, Subject[Event]] = {kind.name: Subject() for kind in kinds}
        self._unread: Subject[dict[tuple[str, str], int]] = Subject()
        self._last_unread: dict[tuple[str, str], int] = {}
        self._problems: Subject[tuple[SourceProblem, ...]] = Subject()
        self._last_problems: tuple[SourceProblem, ...] = ()

    def events(self, kind: Kind[T]) -> Observable[Event]:
        """Return the events of one of the kinds that the source reads from manifests.

        Subscribers are isolated from each other.
        """
        return isolated(self._events[kind.name])

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        """Emit all problems of the source's manifests whenever they change."""
        return isolated(self._problems)

    @property
    def unread(self) -> Observable[dict[tuple[str, str], int]]:
        """Emit the number of objects of each kind that the source of manifests does not read."""
        return isolated(self._unread)

    async def run(self) -> None:
        """Read all manifests of the source, then changed ones, until cancelled."""
        scanned = await asyncio.to_thread(scan, self._roots)
        await self._read_large(scanned.files.items())
        for _ in self.read_found(scanned):
            await asyncio.sleep(0)
        self._notifications = Notifications()
        with self._notifications as notifications:
            scan_at = self._clock()
            while True:
                if self._clock() >= scan_at:
                    scanned = await self._scan()
                    # Of a directory that is watched from now on, changes since the scan are unknown.
                    is_new = notifications.watch(self._directories(scanned))
                    self.compare(scanned)
                    scan_at = self._clock() + (0.0 if is_new else self._pause(scanned))
                await self._read_large(self._settling.due(self._clock()))
                self.read_settled()
                await notifications.wait(self._next_due(scan_at) - self._clock())
                changes, scan_now = notifications.take()
                for change in changes:
                    scan_now |= not self.note(change)
                if scan_now:
                    scan_at = min(scan_at, self._clock() + JOIN_SECONDS)

    async def _read_large(self, due: Iterable[tuple[str, object]]) -> None:
        """Read the large ones of these files in a thread, for `_read`."""
        self._read_before.clear()
        for path, sign in due:
            if isinstance(sign, Signature) and sign.size > LARGE_FILE and signature(path) == sign:
                parsed = await asyncio.to_thread(read_file, path, sign.size, self._reparser.parse)
                self._read_before[path] = sign, parsed

    def rescan(self) -> None:
        """Look for changed manifests now: where the kernel reports no changes."""
        self._notifications.request_scan()

    async def _scan(self) -> ScanResult:
        """Scan the tree, in a thread if that takes long."""
        if len(self._found.files) + len(self._found.directories) > SMALL_TREE:
            return await asyncio.to_thread(scan, self._roots)
        return scan(self._roots)

    def _directories(self, scanned: ScanResult) -> list[str]:
        """Return the directories to watch: of the scan, and of roots that may be files."""
        return list(dict.fromkeys([*scanned.directories, *(name for name, _ in self._root_files)]))

    def _pause(self, scanned: ScanResult) -> float:
        """Return the seconds until the next scan."""
        rest = self._doubts.rest
        pauses = [SCAN_INTERVAL_SECONDS, *([rest] if rest is not None else [])]
        if scanned.missing:
            pauses.append(MISSING_SCAN_SECONDS)
        return max(JOIN_SECONDS, min(pauses))

    def _next_due(self, scan_at: float) -> float:
        due = self._settling.next_due
        return scan_at if due is None else min(due, scan_at)

    def restore(self, files: Mapping[str, Sequence[tuple[str, Resource]]]) -> None:
        """Provide each manifest file's last valid objects from before the start.

        A file that cannot be read or parsed keeps them; a file that is gone, empty or cut is treated as
        if that had just happened.
        """
        within = tuple(root + os.sep for root in self._roots)
        for path, rows in files.items():
            if path in self._roots or path.startswith(within):
                self._catalog.restore(path, rows)

    def kept(self) -> dict[str, list[tuple[str, Resource]]]:
        """Return the objects in effect of each manifest file of which a version was complete."""
        return {
            path: [(kind, row) for (kind, _), row in self._catalog.objects(path).items()]
            for path in sorted(self._catalog)
            if self._catalog.was_complete(path)
        }

    def read_found(self, scanned: ScanResult) -> Iterator[None]:
        """Read all manifests of a scan, in a step for each; emit a Replace of each kind."""
        self._found = scanned
        self._causes.clear()
        now = self._clock()
        for path, sign in scanned.files.items():
            self._read(path, sign, now)
            yield
        for path in self._vanished(scanned):
            self._lose(path, now)
        for path, reason in scanned.skipped.items():
            self._fail(path, reason)
        for kind, event in self._catalog.replacements():
            self._events[kind.name].on_next(event)
        self._emit_problems()

    def compare(self, scanned: ScanResult) -> None:
        """Compare a scan of the source's tree with the known files; changed ones settle."""
        now = self._clock()
        for path, sign in scanned.files.items():
            if self._signatures.get(path) != sign:
                self._settling.see(path, sign, now)
        events: list[tuple[str, Event]] = []
        vanished = self._vanished(scanned)
        for path in vanished:
            if path not in self._roots and not is_manifest_name(os.path.basename(path)):  # noqa: PTH119
                # A directory or a link that can be read again, or is gone.
                events += self._catalog.remove(path)
            elif path not in self._doubts:
                self._settling.see(path, None, now)
        for path, reason in scanned.skipped.items():
            if self._found.skipped.get(path) != reason:
                events += self._fail(path, reason)
        self._found = scanned
        events += self._confirm_doubts(frozenset(vanished), now)
        self._emit(events)

    def _vanished(self, scanned: ScanResult) -> list[str]:
        """Return the known files that a scan did not find, except below unreadable directories."""
        unreadable = tuple(path + os.sep for path in scanned.skipped)
        return [
            path
            for path in self._catalog
            if path not in scanned.files
            and path not in scanned.skipped
            and not path.startswith(unreadable)
        ]

    def note(self, change: Change) -> bool:
        """Record a change of the source's files; False if only a scan finds what it is."""
        path: str | None = os.path.join(change.directory, change.name)  # noqa: PTH118
        if change.directory not in self._found.directories:
            path = self._root_files.get((change.directory, change.name))
        if path is None:
            return True
        if os.path.islink(path) or as_text(path) != path:  # noqa: PTH114
            # It may lead out of the tree, or is not read.
            return False
        self._settling.add(path, signature(path), self._clock(), whole=change.whole)
        return True

    def read_settled(self) -> None:
        """Read the source's changed manifests that are quiet."""
        now = self._clock()
        self._causes.clear()
        events: list[tuple[str, Event]] = []
        for path, before in self._settling.take(now):
            sign = signature(path)
            if sign != before:
                self._settling.add(path, sign, now)
            elif sign is None:
                if path in self._catalog:
                    events += self._lose(path, now)
            elif isinstance(sign, str):
                events += self._fail(path, sign)
            elif self._signatures.get(path) != sign:
                events += self._read(path, sign, now)
        self._emit(events)

    def _read(self, path: str, sign: Signature, now: float) -> list[tuple[str, Event]]:
        """Read one file. If it was cut in its place, the objects that it has lost are kept."""
        before = self._read_before.pop(path, None)
        if before is not None and before[0] == sign:
            content = before[1]
        else:
            content = read_file(path, sign.size, self._reparser.parse)
        if isinstance(content, str):
            return self._fail(path, content)
        former = self._signatures.get(path)
        self._signatures[path] = sign
        if former is None or former.inode == sign.inode:
            lost = self._catalog.cut_off(path, content)
            if lost and not self._doubts.confirm(path, lost, now, Cause.CUT, content):
                return self._catalog.put(path, content, lost)
        self._doubts.dispel(path)
        return self._catalog.put(path, content)

    def _fail(self, path: str, reason: str) -> list[tuple[str, Event]]:
        """Report that a file cannot be read. It is read as soon as it can be, changed or not."""
        self._signatures.pop(path, None)
        return self._catalog.fail(path, reason)

    def _lose(self, path: str, now: float) -> list[tuple[str, Event]]:
        """Remove a file that is gone, unless its directory is empty or away, too."""
        self._signatures.pop(path, None)
        objects = self._catalog.objects(path)
        directory = os.path.dirname(path)  # noqa: PTH120
        cause = Cause.AWAY if path in self._roots else self._cause_of_absence(directory)
        doubt = self._doubts.get(path)
        held = doubt is not None and doubt.parsed is None
        if objects and (cause is not None or held):
            cause = cause or Cause.EMPTY
            if not self._doubts.confirm(path, objects.keys(), now, cause):
                return []
        self._doubts.dispel(path)
        self._reparser.forget(path)
        return self._catalog.remove(path)

    def _cause_of_absence(self, directory: str) -> Cause | None:
        """Return what is wrong with the directory of a file that is gone; None if it has others."""
        if directory not in self._causes:
            self._causes[directory] = self._find_cause(directory)
        return self._causes[directory]

    def _find_cause(self, directory: str) -> Cause | None:
        try:
            with os.scandir(directory or ".") as entries:
                if any(
                    is_manifest_name(entry.name)
                    and not (entry.is_symlink() and signature(entry.path) is None)
                    for entry in entries
                ):
                    return None
        except OSError:
            return Cause.AWAY
        below = directory + os.sep
        known = (path for path in self._found.files if path.startswith(below))
        return None if any(signature(path) is not None for path in known) else Cause.EMPTY

    def _confirm_doubts(self, vanished: AbstractSet[str], now: float) -> list[tuple[str, Event]]:
        """Look at the files in doubt again; what is believed gone is deleted.

        What cannot be read at present confirms nothing.
        """
        self._causes.clear()
        events: list[tuple[str, Event]] = []
        for path in self._doubts:
            doubt = self._doubts.get(path)
            assert doubt is not None  # noqa: S101 - of the iteration
            if doubt.parsed is None:
                if path in vanished:
                    events += self._lose(path, now)
            elif (
                path in self._found.files
                and self._signatures.get(path) == self._found.files[path]
                and self._doubts.confirm(path, doubt.missing, now, doubt.cause, doubt.parsed)
            ):
                events += self._catalog.put(path, doubt.parsed)
        return events

    def _emit(self, events: list[tuple[str, Event]]) -> None:
        for kind, event in events:
            self._events[kind].on_next(event)
        self._emit_problems()

    def _emit_problems(self) -> None:
        if self._settling.next_due is None:
            self._missing.clear()
        self._missing.update(self._found.missing)
        problems = (*self._catalog.problems, *self._other_problems())
        if problems != self._last_problems:
            self._last_problems = problems
            self._problems.on_next(problems)
        unread = self._catalog.unread
        if unread != self._last_unread:
            self._last_unread = unread
            self._unread.on_next(unread)

    def _other_problems(self) -> list[SourceProblem]:
        problems = [
            SourceProblem(path, 0, 0, None, "", message, lost=True)
            for path, message in (
                *((path, MISSING) for path in sorted(self._missing)),
                *self._found.broken_links.items(),
            )
        ]
        unwatched: defaultdict[str, list[str]] = defaultdict(list)
        for directory, reason in self._notifications.errors.items():
            unwatched[reason].append(directory)
        for reason, (directory, *others) in unwatched.items():
            more = f", here and in {len(others)} more" if others else ""
            message = f"changes are found by scans only{more}: {reason}"
            problems.append(SourceProblem(directory, 0, 0, None, "", message))
        return [*problems, *self._doubts.problems()]
