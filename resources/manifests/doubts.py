"""Files whose content is gone, as far as can be seen, but whose objects are kept. Pure.

A directory that is empty or away may not be mounted, or is being written again; a file without its end
may be half written. What is believed gone has to be
confirmed (`resources.disappearance`).
"""

from __future__ import annotations

import enum
import os
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from resources.disappearance import Disappearance
from resources.manifests.parse import Identity, Parsed
from resources.source import SourceProblem


class Cause(enum.Enum):
    """Why objects are missing."""

    CUT = "cut"
    EMPTY = "empty"
    AWAY = "away"


class Doubt:
    """One file: the objects that are missing, and for how long."""

    def __init__(self, hold: float) -> None:
        self.disappearance = Disappearance(hold)
        self.cause = Cause.CUT
        self.missing: AbstractSet[Identity] = frozenset()
        self.parsed: Parsed | None = None
        """The content that is to count; None if the file is gone."""


class Doubts:
    """The doubts of all files, by path."""

    def __init__(self, hold: float) -> None:
        """``hold``: seconds for which a loss has to last."""
        self.hold = hold
        self._files: dict[str, Doubt] = {}

    def __contains__(self, path: str) -> bool:
        """True if objects of this file stay in use although they are missing."""
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        """Iterate over the files, which may be changed meanwhile."""
        return iter(tuple(self._files))

    def get(self, path: str) -> Doubt | None:
        """Return the doubt about a file's lost content."""
        return self._files.get(path)

    def confirm(
        self,
        path: str,
        missing: AbstractSet[Identity],
        now: float,
        cause: Cause,
        parsed: Parsed | None = None,
    ) -> bool:
        """Count a reading of a doubted file without its objects; True if they are believed gone."""
        doubt = self._files.setdefault(path, Doubt(self.hold))
        doubt.cause, doubt.missing, doubt.parsed = cause, missing, parsed
        if not doubt.disappearance.confirm(missing, now):
            return False
        del self._files[path]
        return True

    def dispel(self, path: str) -> None:
        """Forget the doubt about a file that is whole again."""
        self._files.pop(path, None)

    @property
    def rest(self) -> float | None:
        """Seconds until the next doubt ends, and a loss may be believed; None without a doubt."""
        pauses = (doubt.disappearance.rest for doubt in self._files.values())
        return min(pauses, default=None)

    def problems(self) -> list[SourceProblem]:
        """Return a problem for each doubt: a cut file, a directory that is empty or away."""
        until = f"until this has lasted for {self.hold:g} s (--mass-withdraw-hold)"
        problems = []
        gone: defaultdict[tuple[str, Cause], list[Doubt]] = defaultdict(list)
        for path, doubt in self._files.items():
            if doubt.cause is Cause.CUT:
                what = "is empty" if doubt.parsed and not doubt.parsed.items else "has lost its end"
                message = f"{what}; {_objects(len(doubt.missing))} {until}"
                problems.append(SourceProblem(path, 0, 0, None, "", message))
            else:
                gone[os.path.dirname(path), doubt.cause].append(doubt)  # noqa: PTH120
        for (directory, cause), doubts in gone.items():
            number = sum(len(doubt.missing) for doubt in doubts)
            what = "has no manifests" if cause is Cause.EMPTY else "is not there"
            message = f"{what} any more; {_objects(number)} {until}"
            problems.append(SourceProblem(directory, 0, 0, None, "", message))
        return problems


def _objects(number: int) -> str:
    return "its object is kept" if number == 1 else f"its {number} objects are kept"
