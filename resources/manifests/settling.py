"""Changed files until they have been quiet for a moment: a program may still be writing them. Pure.

Times are seconds of one clock.
"""

from __future__ import annotations

import os
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from resources.manifests.files import Signature

QUIET_SECONDS: Final = 0.1
"""How long a file must not change before it is read."""
LONGEST_SECONDS: Final = 2.0
"""After which a file that keeps changing is read nevertheless."""

State: TypeAlias = Signature | str | None
"""A file's state, as `resources.manifests.files.signature` returns it."""


_due_at = attrgetter("due")


class _Changed(NamedTuple):
    state: State
    first: float
    """Of the first change."""
    due: float


class _Vanished(NamedTuple):
    """The files that have vanished from one directory."""

    paths: set[str]
    first: float
    due: float


class Settling:
    """The files that have changed and are to be read, or are gone."""

    def __init__(self) -> None:
        self._changed: dict[str, _Changed] = {}
        self._vanished: dict[str, _Vanished] = {}
        """By directory: a tree is deleted file by file, so the time of the last one is that of all."""

    def add(self, path: str, state: State, now: float, *, whole: bool = False) -> None:
        """Record a change of a file that has to settle; a file that is ``whole`` is due at once."""
        directory = os.path.dirname(path)  # noqa: PTH120
        group = self._vanished.get(directory)
        if state is None:
            self._changed.pop(path, None)
            if group is None:
                group = self._vanished[directory] = _Vanished(set(), now, now)
            group.paths.add(path)
            self._vanished[directory] = group._replace(due=_due(group.first, now))
            return
        if group is not None:
            group.paths.discard(path)
        before = self._changed.get(path)
        first = now if before is None else before.first
        self._changed[path] = _Changed(state, first, now if whole else _due(first, now))

    def see(self, path: str, state: State, now: float) -> None:
        """Record what a scan has found of a settling file; the same as before changes nothing."""
        if state is None:
            group = self._vanished.get(os.path.dirname(path))  # noqa: PTH120
            known = group is not None and path in group.paths
        else:
            before = self._changed.get(path)
            known = before is not None and before.state == state
        if not known:
            self.add(path, state, now)

    def due(self, now: float) -> list[tuple[str, State]]:
        """Return the settled files that `take` returns, without vanished files."""
        return [
            (path, changed.state) for path, changed in self._changed.items() if changed.due <= now
        ]

    def take(self, now: float) -> list[tuple[str, State]]:
        """Return the files that have settled, with their state at the last change."""
        changed = [path for path, changed in self._changed.items() if changed.due <= now]
        due = [(path, self._changed.pop(path).state) for path in changed]
        for directory in [name for name, group in self._vanished.items() if group.due <= now]:
            due += [(path, None) for path in self._vanished.pop(directory).paths]
        return sorted(due, key=lambda state_of_path: state_of_path[0])

    @property
    def next_due(self) -> float | None:
        """When the next file has settled; None without any."""
        return min(
            map(_due_at, chain(self._changed.values(), self._vanished.values())), default=None
        )


def _due(first: float, now: float) -> float:
    return min(now + QUIET_SECONDS, first + LONGEST_SECONDS)
