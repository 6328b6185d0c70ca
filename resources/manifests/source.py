"""A watched directory of manifests as a source.

The kernel notifies of changed files, and only those are read again. A periodic scan of the whole tree
finds changes without a notification (file systems without inotify, an overflow, a directory that was
deleted and created again).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TypeVar

from reactivex import Observable
from reactivex.subject import Subject
from watchfiles import awatch

from resources.kind import Kind, Kinds
from resources.manifests.catalog import Catalog
from resources.manifests.files import ScanResult, Signature, is_manifest_name, scan, signature
from resources.manifests.load import read_into
from resources.meta import Resource
from resources.source import Event, SourceProblem
from resources.streams import isolated

T = TypeVar("T", bound=Resource)

SETTLE_MS = 2
"""Milliseconds without a notification after which the watcher reports changes."""
DEBOUNCE_MS = 20
"""Milliseconds after which it reports them at the latest."""
SCAN_INTERVAL_SECONDS = 5.0
"""Between two scans of the whole tree."""


class ManifestsSource:
    """Reads files and directory trees, and follows their changes."""

    name = "manifests"

    def __init__(
        self,
        paths: Iterable[str | Path],
        kinds: Kinds,
        *,
        scan_interval: float = SCAN_INTERVAL_SECONDS,
    ) -> None:
        self._roots = [str(path) for path in paths]
        self._scan_interval = scan_interval
        self.kinds = tuple(kinds)
        self._catalog = Catalog(kinds)
        self._signatures: dict[str, Signature] = {}
        self._skipped: dict[str, str] = {}
        self._events: dict[str, Subject[Event]] = {kind.name: Subject() for kind in kinds}
        self._unread: Subject[dict[tuple[str, str], int]] = Subject()
        self._last_unread: dict[tuple[str, str], int] = {}
        self._problems: Subject[tuple[SourceProblem, ...]] = Subject()
        self._last_problems: tuple[SourceProblem, ...] = ()

    def events(self, kind: Kind[T]) -> Observable[Event]:
        """Return the events of one of its kinds; subscribers are isolated from each other."""
        return isolated(self._events[kind.name])

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        """Emit all problems whenever they change."""
        return isolated(self._problems)

    @property
    def unread(self) -> Observable[dict[tuple[str, str], int]]:
        """Emit the number of objects of each kind that is not read whenever one changes."""
        return isolated(self._unread)

    async def run(self) -> None:
        """Read all files, then changed ones, until cancelled."""
        self.read_all()
        async for changed in self._changes():
            if changed is None:
                # In a thread, as the scan of a large tree takes long.
                self.compare(await asyncio.to_thread(scan, self._roots))
            else:
                self.read_changed(changed)

    def read_all(self) -> None:
        """Read all files, and emit a Replace of each kind."""
        found = scan(self._roots)
        self._signatures = found.files
        self._skipped = found.skipped
        for path, sign in found.files.items():
            read_into(self._catalog, path, sign.size)
        for path, reason in found.skipped.items():
            self._catalog.fail(path, reason)
        for kind, event in self._catalog.replacements():
            self._events[kind.name].on_next(event)
        self._emit_problems()

    def rescan(self) -> None:
        """Scan the whole tree, and read changed files."""
        self.compare(scan(self._roots))

    def compare(self, found: ScanResult) -> None:
        """Compare a scan of the whole tree with the last one, and read changed files."""
        changed = [p for p, sign in found.files.items() if self._signatures.get(p) != sign]
        deleted = [p for p in self._catalog if p not in found.files and p not in found.skipped]
        events: list[tuple[str, Event]] = []
        for path in changed:
            events += read_into(self._catalog, path, found.files[path].size)
        for path in deleted:
            events += self._catalog.remove(path)
        for path, reason in found.skipped.items():
            if self._skipped.get(path) != reason:
                events += self._catalog.fail(path, reason)
        self._signatures = found.files
        self._skipped = found.skipped
        self._emit(events)

    def read_changed(self, paths: set[str]) -> None:
        """Read these files again, if they have changed."""
        events: list[tuple[str, Event]] = []
        for path in sorted(paths):
            sign = signature(path)
            if isinstance(sign, Signature):
                if self._signatures.get(path) != sign:
                    self._signatures[path] = sign
                    events += read_into(self._catalog, path, sign.size)
            elif sign is None:
                self._signatures.pop(path, None)
                if path in self._catalog:
                    events += self._catalog.remove(path)
            else:
                events += self._catalog.fail(path, sign)
        self._emit(events)

    def _emit(self, events: list[tuple[str, Event]]) -> None:
        for kind, event in events:
            self._events[kind].on_next(event)
        self._emit_problems()

    def _emit_problems(self) -> None:
        problems = self._catalog.problems
        if problems != self._last_problems:
            self._last_problems = problems
            self._problems.on_next(problems)
        unread = self._catalog.unread
        if unread != self._last_unread:
            self._last_unread = unread
            self._unread.on_next(unread)

    async def _changes(self) -> AsyncIterator[set[str] | None]:
        """Yield changed files, or None if the whole tree has to be scanned."""
        while True:
            present = self._present()
            if not present:
                await asyncio.sleep(min(1.0, self._scan_interval))
                yield None
                continue
            stop = asyncio.Event()
            watched = [_directory(root) for root in present]
            watcher = awatch(
                *watched,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=SETTLE_MS,
                rust_timeout=int(self._scan_interval * 1000),
                yield_on_timeout=True,
                stop_event=stop,
                ignore_permission_denied=True,
            )
            # The watch starts before the scan, so that no change in between is lost.
            pending = asyncio.ensure_future(anext(watcher))
            await asyncio.sleep(0)
            try:
                # The scan finds changes before the start of the watch.
                yield None
                while True:
                    changes = await pending
                    yield self._changed_manifests({path for _, path in changes})
                    if self._present() != present:
                        break
                    pending = asyncio.ensure_future(anext(watcher))
            except (OSError, RuntimeError, StopAsyncIteration):
                # The watch failed (a deleted directory, too many watches): scan, and watch again.
                await asyncio.sleep(min(1.0, self._scan_interval))
            finally:
                stop.set()
                pending.cancel()
                await asyncio.gather(pending, return_exceptions=True)
                await watcher.aclose()

    def _present(self) -> list[str]:
        return [root for root in self._roots if Path(root).exists()]

    def _changed_manifests(self, changed: set[str]) -> set[str] | None:
        """Return the manifests among changed paths; None if another path requires a scan."""
        if not changed:
            return None
        files = {self._as_scanned(path) for path in changed if is_manifest_name(Path(path).name)}
        # A new or renamed directory, or a ConfigMap's ..data link, adds files without notifications.
        for path in changed:
            name = Path(path).name
            if is_manifest_name(name):
                continue
            if name.startswith("..") or path in self._roots or Path(path).is_dir():
                return None
        return files

    def _as_scanned(self, path: str) -> str:
        """Return an absolute path of the watcher in the form of the scan."""
        for root in self._roots:
            absolute = os.path.abspath(root)  # noqa: PTH100
            if path == absolute:
                return root
            if path.startswith(absolute + os.sep):
                return os.path.join(root, path[len(absolute) + 1 :])  # noqa: PTH118
        return path


def _directory(root: str) -> str:
    path = Path(root)
    return root if path.is_dir() else str(path.parent)
