"""The objects of all manifest files, and the resource events that a changed file causes. No I/O.

Of two files with the same object, the first one in the order of paths provides it and the other one is
reported as a problem. A file that cannot be parsed to its end keeps its objects; an invalid object
keeps its last valid version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from msgspec.structs import replace

from resources.disappearance import is_mass
from resources.errors import ObjectName
from resources.kind import Kind, Kinds
from resources.manifests.parse import Identity, Item, Parsed
from resources.meta import Resource
from resources.source import Delete, Event, Replace, SourceProblem, Upsert


class Catalog:
    """The objects of all files, and their problems."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._unread: dict[str, Mapping[tuple[str, str], int]] = {}
        """Numbers of objects of kinds that are not read, by file."""
        self._files: dict[str, dict[Identity, Item]] = {}
        """Objects in effect, with their rows, by file."""
        self._owners: dict[Identity, list[str]] = {}
        """The files that hold an object, in the order of their paths: the first one provides it."""
        self._contested: set[Identity] = set()
        """Objects that more than one file holds."""
        self._problems: dict[str, tuple[SourceProblem, ...]] = {}
        """By file."""
        self._complete: set[str] = set()
        """Files of which a version was parsed to its end, in this run or before it."""

    def __contains__(self, path: str) -> bool:
        """True if a file is in the catalog."""
        return path in self._files or path in self._problems

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths of the files."""
        return iter(self._files.keys() | self._problems.keys())

    def was_complete(self, path: str) -> bool:
        """True if a version of a file of the catalog was parsed to its end, now or before."""
        return path in self._complete

    def objects(self, path: str) -> Mapping[Identity, Resource]:
        """Return the objects of a file in the catalog that are in effect."""
        held = self._files.get(path, {})
        return {identity: item.row for identity, item in held.items() if item.row is not None}

    def restore(self, path: str, rows: Iterable[tuple[str, Resource]]) -> None:
        """Add a file's last valid objects from before the start to the catalog, with their kinds."""
        self._files[path] = {
            (kind, row.key): Item((kind, row.key), row, 0, 0) for kind, row in rows
        }
        self._complete.add(path)
        for identity in self._files[path]:
            self._update_owners(identity, path, holds=True)

    def cut_off(self, path: str, parsed: Parsed) -> frozenset[Identity]:
        """Return the objects of the catalog that a file's new content lacks, if it looks cut.

        That is: all of them without others instead, or at least two and more than a fifth, which
        were the end of the file. Otherwise the result is empty.
        """
        before = self._files.get(path, {})
        if not parsed.whole or len(parsed.items) >= len(before):
            return frozenset()
        listed = {item.identity for item in parsed.items}
        missing = before.keys() - listed
        if not is_mass(len(before), len(missing), len(listed)):
            return frozenset()
        order = list(before)
        if any(identity in listed for identity in order[len(order) - len(missing) :]):
            return frozenset()
        return frozenset(missing)

    def put(
        self, path: str, parsed: Parsed, keep: AbstractSet[Identity] = frozenset()
    ) -> list[tuple[str, Event]]:
        """Replace the content of a file in the catalog; returns the resulting events, with their kinds.

        ``keep`` are former objects that are kept. The last object before them may be incomplete,
        so that it keeps its former version, too.
        """
        before = self._files.get(path, {})
        after: dict[Identity, Item] = {}
        problems = list(parsed.problems)
        if parsed.whole:
            self._complete.add(path)
            self._unread.pop(path, None)
            if parsed.unread:
                self._unread[path] = parsed.unread
        for item in parsed.items:
            identity = item.identity
            if identity in after:
                first = after[identity]
                message = f"is defined twice; the one {_place(first)} is used"
                problems.append(
                    SourceProblem(path, item.document, item.line, item.name, "", message)
                )
            elif item.row is not None:
                after[identity] = item
            elif identity in before:
                after[identity] = before[identity]
        if keep:
            last = next(reversed(after), None)
            if last in before:
                after[last] = before[last]
            after |= {identity: before[identity] for identity in before if identity in keep}
        if not parsed.whole:
            # The rest of the file may have the other objects.
            after = {**before, **after}
        complete = path in self._complete
        known_problems = tuple(_with_effect(problem, after, complete) for problem in problems)
        return self._exchange(path, after, known_problems)

    def remove(self, path: str) -> list[tuple[str, Event]]:
        """Remove a file from the catalog; returns the resulting events."""
        events = self._exchange(path, {}, ())
        self._files.pop(path, None)
        self._complete.discard(path)
        self._problems.pop(path, None)
        self._unread.pop(path, None)
        return events

    def fail(self, path: str, message: str) -> list[tuple[str, Event]]:
        """Record in the catalog that a file cannot be read; it keeps its objects."""
        kept = self._files.get(path, {})
        problem = SourceProblem(path, 0, 0, None, "", message, lost=not kept)
        return self._exchange(path, kept, (problem,))

    def _exchange(
        self, path: str, after: dict[Identity, Item], problems: tuple[SourceProblem, ...]
    ) -> list[tuple[str, Event]]:
        before = self._files.get(path, {})
        # Of a large file most items are the same as before.
        touched = [
            identity
            for identity, item in before.items()
            if (now := after.get(identity)) is not item
            and (now is None or (now.row is not item.row and now.row != item.row))
        ]
        touched += [identity for identity in after if identity not in before]
        old = {identity: self._effective(identity) for identity in touched}
        self._files[path] = after
        if before.keys() != after.keys():
            for identity in before | after:  # in the order of the file, which the rows keep
                if (identity in before) != (identity in after):
                    self._update_owners(identity, path, holds=identity in after)
        self._problems.pop(path, None)
        if problems:
            self._problems[path] = problems
        events: list[tuple[str, Event]] = []
        for identity in touched:
            row = self._effective(identity)
            if row is None:
                events.append((identity[0], Delete(identity[1])))
            elif (identity in before and self._owners[identity][0] == path) or row != old[identity]:
                # Versions of this file, if it is in effect, were compared above.
                events.append((identity[0], Upsert(row)))
        return events

    def _update_owners(self, identity: Identity, path: str, *, holds: bool) -> None:
        """Add or remove a file that holds an object."""
        others = [owner for owner in self._owners.get(identity, ()) if owner != path]
        owners = sorted([*others, path]) if holds else others
        if owners:
            self._owners[identity] = owners
        else:
            del self._owners[identity]
        if len(owners) > 1:
            self._contested.add(identity)
        else:
            self._contested.discard(identity)

    def _effective(self, identity: Identity) -> Resource | None:
        owners = self._owners.get(identity)
        if not owners:
            return None
        held = self._files[owners[0]].get(identity)
        return held.row if held is not None else None

    def replacements(self) -> list[tuple[Kind[Any], Replace[Any]]]:
        """Return a Replace event with all the catalog's objects of each kind."""
        rows: dict[str, list[Resource]] = {kind.name: [] for kind in self.kinds}
        for identity, owners in self._owners.items():
            kind, _ = identity
            row = self._files[owners[0]][identity].row
            if row is not None:
                rows[kind].append(row)
        return [(kind, Replace(tuple(rows[kind.name]))) for kind in self.kinds]

    @property
    def unread(self) -> dict[tuple[str, str], int]:
        """The catalog's number of objects of each kind that is not read.

        By ``apiVersion`` and ``kind``.
        """
        return dict(sum(map(Counter, self._unread.values()), Counter()))

    @property
    def problems(self) -> tuple[SourceProblem, ...]:
        """The problems of all files in the catalog, and one for each duplicate object."""
        all_problems = [problem for problems in self._problems.values() for problem in problems]
        for identity in self._contested:
            owners = self._owners[identity]
            for path in owners[1:]:
                first = self._files[owners[0]][identity]
                held = self._files[path][identity]
                where = f"{owners[0]}:{first.line}" if first.line else owners[0]
                name = ObjectName(identity[0], *identity[1])
                message = f"is already defined in {where}, which takes precedence"
                all_problems.append(
                    SourceProblem(path, held.document, held.line, name, "", message)
                )
        return tuple(sorted(all_problems, key=_order))


def _with_effect(
    problem: SourceProblem, held: Mapping[Identity, Item], complete: bool
) -> SourceProblem:
    """Record in a problem whether the object, or all of the file, has a version in effect."""
    if problem.object is not None:
        name = problem.object
        lost = (name.kind, (name.namespace, name.name)) not in held
    else:
        lost = bool(problem.document) or not held or not complete
    return replace(problem, lost=lost) if lost else problem


def _place(held: Item) -> str:
    return f"in line {held.line}" if held.line else "before it"


def _order(problem: SourceProblem) -> tuple[Any, ...]:
    return (problem.file, problem.document, problem.line, str(problem.object), problem.field)
