"""The kernel's notifications (inotify) of changes in directories, for the event loop.

Nothing runs while nothing changes. A file that was renamed into its place is whole; a file that is
written in place may be incomplete. What the kernel refuses raises nothing; it is in
`Notifications.errors` until a later call of `watch` succeeds.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from itertools import chain
from types import TracebackType
from typing import Final, NamedTuple, Self

from asyncinotify import Event, Inotify, Mask, Watch

from resources.manifests.files import is_manifest_name, reason_of

_MASK: Final = (
    Mask.MODIFY
    | Mask.CLOSE_WRITE
    | Mask.CREATE
    | Mask.DELETE
    | Mask.MOVE
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
    | Mask.ONLYDIR
)
_OF_THE_TREE: Final = (
    Mask.ISDIR | Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.IGNORED | Mask.UNMOUNT | Mask.Q_OVERFLOW
)
"""Events after which the whole tree is scanned; also of names such as a ConfigMap's ``..data``."""
_EVENTS_PER_READ: Final = 256


class Change(NamedTuple):
    """A manifest that was created, changed or deleted."""

    directory: str
    name: str
    whole: bool
    """True if it was renamed into its place."""


class Notifications:
    """Watches directories. Use it as a context manager, in the loop."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._watches: dict[int, Watch] = {}
        self._paths: dict[int, list[str]] = {}
        """The directories of each watch: links may lead to one by several paths."""
        self._arrived = asyncio.Event()
        self._scan_requested = False
        self.errors: dict[str, str] = {}
        """Why directories are not watched."""

    def __enter__(self) -> Self:
        """Use it in the loop that runs; the kernel's interface is opened by `watch`."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self._close()

    def _open(self) -> Inotify:
        """Open the kernel's interface, unless that is done. Raises `OSError`."""
        if self._inotify is None:
            opened = Inotify(cache_size=_EVENTS_PER_READ, sync_timeout=0)
            try:
                asyncio.get_running_loop().add_reader(opened.fd, self._arrived.set)
            except OSError:
                opened.close()
                raise
            self._inotify = opened
        return self._inotify

    def _close(self) -> None:
        inotify, self._inotify = self._inotify, None
        self._watches, self._paths = {}, {}
        if inotify is not None:
            asyncio.get_running_loop().remove_reader(inotify.fd)
            inotify.close()

    def watch(self, directories: Collection[str]) -> bool:
        """Watch these directories (inotify) and no others; True if one is watched only from now."""
        self.errors = {}
        try:
            inotify = self._open()
        except OSError as error:
            self.errors = dict.fromkeys(directories, reason_of(error))
            return False
        watches: dict[int, Watch] = {}
        paths: dict[int, list[str]] = {}
        for directory in directories:
            try:
                watch = inotify.add_watch(directory, _MASK)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.errors[directory] = reason_of(error)
                continue
            watches[watch.wd] = watch
            paths.setdefault(watch.wd, []).append(directory)
        is_new = any(self._paths.get(wd) != descriptor for wd, descriptor in paths.items())
        for wd in self._watches.keys() - watches.keys():
            self._remove(inotify, self._watches[wd])
        self._watches, self._paths = watches, paths
        return is_new

    def _remove(self, inotify: Inotify, watch: Watch) -> None:
        try:
            inotify.rm_watch(watch)
        except (OSError, ValueError):
            # The kernel has removed it, with its directory.
            return

    def request_scan(self) -> None:
        """Scan the tree, as after a notification of a change."""
        self._scan_requested = True
        self._arrived.set()

    async def wait(self, seconds: float) -> None:
        """Wait for a notification of the kernel, for some seconds at most."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._arrived.wait()
        except TimeoutError:
            pass

    def take(self) -> tuple[list[Change], bool]:
        """Return the notified changes since the last call, and whether to scan the tree."""
        self._arrived.clear()
        changes: list[Change] = []
        scan, self._scan_requested = self._scan_requested, False
        for event in self._events():
            name = os.fspath(event.name) if event.name is not None else ""
            if event.mask & _OF_THE_TREE or name.startswith(".."):
                scan = True
            elif is_manifest_name(name) and event.watch is not None:
                whole = bool(event.mask & Mask.MOVED_TO)
                for directory in self._paths.get(event.watch.wd, ()):
                    changes.append(Change(directory, name, whole))  # noqa: PERF401  mostly one
        return changes, scan

    def _events(self) -> list[Event]:
        """Return the events that have arrived; after an error, which costs events, the earlier ones."""
        events: list[Event] = []
        try:
            while self._inotify is not None and (event := self._inotify.sync_get()) is not None:
                events.append(event)
        except OSError as error:
            self.errors = dict.fromkeys(chain.from_iterable(self._paths.values()), reason_of(error))
            self._close()
            self.request_scan()
        return events
