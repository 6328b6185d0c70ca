"""A watched directory of manifests as a source.

The kernel tells which files changed; only those are read again. A slower look at the whole tree
catches what no notification told (a file system without them, an overflow, a directory that was
deleted and came back).
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
from resources.manifests.files import Found, Signature, is_manifest_name, scan, signature
from resources.manifests.load import read_into
from resources.meta import Resource
from resources.source import Event, SourceProblem
from resources.streams import isolated

T = TypeVar("T", bound=Resource)

SETTLE_MS = 2
"""How long the watcher collects changes before it tells them."""
DEBOUNCE_MS = 20
"""How long it does so at the most while they keep coming."""
LOOK_AGAIN = 5.0
"""Seconds between two looks at the whole tree."""


class ManifestsSource:
    """Reads files and directory trees, and goes on as they change."""

    name = "manifests"

    def __init__(
        self, paths: Iterable[str | Path], kinds: Kinds, *, look_again: float = LOOK_AGAIN
    ) -> None:
        self._roots = [str(path) for path in paths]
        self._look_again = look_again
        self.kinds = tuple(kinds)
        self._catalog = Catalog(kinds)
        self._signatures: dict[str, Signature] = {}
        self._skipped: dict[str, str] = {}
        self._events: dict[str, Subject[Event]] = {kind.name: Subject() for kind in kinds}
        self._unread: Subject[dict[tuple[str, str], int]] = Subject()
        self._last_unread: dict[tuple[str, str], int] = {}
        self._problems: Subject[tuple[SourceProblem, ...]] = Subject()
        self._told: tuple[SourceProblem, ...] = ()

    def events(self, kind: Kind[T]) -> Observable[Event]:
        """Return the events of one of its kinds; subscribers are isolated from each other."""
        return isolated(self._events[kind.name])

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        """Tell all that is wrong, anew whenever that changes."""
        return isolated(self._problems)

    @property
    def unread(self) -> Observable[dict[tuple[str, str], int]]:
        """Emit the number of objects of each kind that is not read whenever one changes."""
        return isolated(self._unread)

    async def run(self) -> None:
        """Read everything, then what changes, until cancelled."""
        self.read_all()
        async for changed in self._changes():
            if changed is None:
                # A large tree takes its time to look at; nobody waits for it.
                self.compare(await asyncio.to_thread(scan, self._roots))
            else:
                self.look_at(changed)

    def read_all(self) -> None:
        """Read everything and tell it as replacements."""
        found = scan(self._roots)
        self._signatures = found.files
        self._skipped = found.skipped
        for path, sign in found.files.items():
            read_into(self._catalog, path, sign.size)
        for path, reason in found.skipped.items():
            self._catalog.fail(path, reason)
        for kind, event in self._catalog.replacements():
            self._events[kind.name].on_next(event)
        self._tell_problems()

    def look(self) -> None:
        """Look at the whole tree, and read what differs."""
        self.compare(scan(self._roots))

    def compare(self, found: Found) -> None:
        """Compare the whole tree with what was read, and read what differs."""
        changed = [p for p, sign in found.files.items() if self._signatures.get(p) != sign]
        gone = [p for p in self._catalog if p not in found.files and p not in found.skipped]
        events: list[tuple[str, Event]] = []
        for path in changed:
            events += read_into(self._catalog, path, found.files[path].size)
        for path in gone:
            events += self._catalog.remove(path)
        for path, reason in found.skipped.items():
            if self._skipped.get(path) != reason:
                events += self._catalog.fail(path, reason)
        self._signatures = found.files
        self._skipped = found.skipped
        self._tell(events)

    def look_at(self, paths: set[str]) -> None:
        """Read files again that have changed."""
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
        self._tell(events)

    def _tell(self, events: list[tuple[str, Event]]) -> None:
        for kind, event in events:
            self._events[kind].on_next(event)
        self._tell_problems()

    def _tell_problems(self) -> None:
        problems = self._catalog.problems
        if problems != self._told:
            self._told = problems
            self._problems.on_next(problems)
        unread = self._catalog.unread
        if unread != self._last_unread:
            self._last_unread = unread
            self._unread.on_next(unread)

    async def _changes(self) -> AsyncIterator[set[str] | None]:
        """Yield files that changed, or None when the whole tree has to be looked at."""
        while True:
            present = self._present()
            if not present:
                await asyncio.sleep(min(1.0, self._look_again))
                yield None
                continue
            stop = asyncio.Event()
            watched = [_directory(root) for root in present]
            watcher = awatch(
                *watched,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=SETTLE_MS,
                rust_timeout=int(self._look_again * 1000),
                yield_on_timeout=True,
                stop_event=stop,
                ignore_permission_denied=True,
            )
            # The watch has to be there before the look: a change in between would be found by neither.
            pending = asyncio.ensure_future(anext(watcher))
            await asyncio.sleep(0)
            try:
                # What changed before the watch was there is found by looking once.
                yield None
                while True:
                    changes = await pending
                    yield self._interesting({path for _, path in changes})
                    if self._present() != present:
                        break
                    pending = asyncio.ensure_future(anext(watcher))
            except (OSError, RuntimeError, StopAsyncIteration):
                # The watch is lost (a directory is gone, too many watches): look, and watch anew.
                await asyncio.sleep(min(1.0, self._look_again))
            finally:
                stop.set()
                pending.cancel()
                await asyncio.gather(pending, return_exceptions=True)
                await watcher.aclose()

    def _present(self) -> list[str]:
        return [root for root in self._roots if Path(root).exists()]

    def _interesting(self, changed: set[str]) -> set[str] | None:
        """Reduce what the kernel told to files; None when something else than a file changed."""
        if not changed:
            return None
        files = {self._spelled(path) for path in changed if is_manifest_name(Path(path).name)}
        # A new or renamed directory, or a ConfigMap's ..data link, brings files without telling.
        for path in changed:
            name = Path(path).name
            if is_manifest_name(name):
                continue
            if name.startswith("..") or path in self._roots or Path(path).is_dir():
                return None
        return files

    def _spelled(self, path: str) -> str:
        """Spell a path as the scan does: the watcher tells absolute ones."""
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
