"""Which tests execute a line or read its module, the most specific and quickest first."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path

from tests.mutants.record import Part
from tests.mutants.rfc_rows import ROOT


class Reach:
    """A record of the tests (`tests.mutants.record`) as that of the present text."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Join parts, the latest first: the latest part that has a file has its tests.

        A file that is deleted has none: pytest would refuse the whole run, as with a mutant that
        cannot be imported.
        """
        self._parts = parts
        self._tests: list[set[str]] = []
        """By part: the tests that it is the latest one of."""
        self._seconds: dict[str, float] = {}
        files = set[str]()
        for part in parts:
            new = {file for file in part.files.keys() - files if (ROOT / file).exists()}
            own = {test for test in part.seconds if _file(test) in new}
            files |= part.files.keys()
            self._tests.append(own)
            self._seconds |= {test: part.seconds[test] for test in own}
        self._importers = _importers(files)
        self._lines: dict[str, dict[int, set[str]]] = {}

    def tests(
        self, module: str, first: int, last: int, within: float, passed: Collection[str] = ()
    ) -> list[str]:
        """Return the tests of a module's lines, as pytest's arguments, most specific first.

        Tests whose file is named after the module come first, for half of ``within`` seconds, then the
        quick ones, of each file in turn, until their times add up to it. Tests that read the module's
        text, as for a page that lists what is in the code, see all lines. Where time is left, and of
        lines that run at import: the other tests of the module, of files that import it or are named
        after it. Beyond the tests that have ``passed`` the module's own files come first.
        """
        lines = self._of_module(module)
        reached = set[str]().union(*(lines.get(line, ()) for line in range(first, last + 1)))
        for part, own in zip(self._parts, self._tests, strict=True):
            reached |= own.intersection(part.readers.get(module, ()))
        # A module that one test imports first runs in the name of that test alone.
        dotted = _dotted(module)
        # Of a module that no test imports by itself: the tests that import its package.
        files = self._importers.get(dotted) or self._importers.get(dotted.rpartition(".")[0], set())
        path = Path(module)
        names = {path.stem, path.parent.name} - {"__init__"}

        def is_own(file: str) -> bool:
            of_room = file.startswith(f"tests/{path.parts[0]}/")
            return of_room and Path(file).stem.removeprefix("test_") in names

        others = set[str]().union(*lines.values())
        others |= {test for test in self._seconds if _file(test) in files or is_own(_file(test))}
        if not _is_in_function(module, first):
            reached |= others

        def rank(test: str) -> tuple[bool, bool, bool]:
            file = _file(test)
            if passed:
                return not is_own(file) and file not in files, test not in reached, not is_own(file)
            return test not in reached, not is_own(file), file not in files

        quickest = sorted(
            ((reached | others) & self._seconds.keys()).difference(passed),
            key=lambda test: (self._seconds[test], test),
        )
        chosen: list[str] = []
        total = 0.0
        for test in sorted(_in_turns(quickest), key=rank):
            # Slow tests of the module's own leave half of the time to the others.
            limit = within / 2 if rank(test)[:2] == (False, False) else within
            if total + self._seconds[test] <= limit or not chosen:
                total += self._seconds[test]
                chosen.append(test)
        return chosen

    @property
    def names(self) -> set[str]:
        """The tests."""
        return set(self._seconds)

    def seconds(self, test: str) -> float:
        """Return how long a test took."""
        return self._seconds[test]

    def leave_out(self, tests: Iterable[str]) -> None:
        """Drop tests that turn out to fail by themselves."""
        for test in tests:
            self._seconds.pop(test, None)

    def _of_module(self, module: str) -> dict[int, set[str]]:
        """Return the tests of each line of a module's present text."""
        if module in self._lines:
            return self._lines[module]
        lines = self._lines[module] = {}
        text = (ROOT / module).read_text()
        for part, own in zip(self._parts, self._tests, strict=True):
            present = _present_lines(part.texts.get(module, ""), text)
            of_files: dict[str, set[str]] = {}
            for test in own:
                of_files.setdefault(_file(test), set()).add(test)
            for line, names in part.lines.contexts_by_lineno(module).items():
                # What a file executes when it is imported is recorded in its own name.
                found = own.intersection(names).union(*(of_files.get(name, ()) for name in names))
                if line in present and found:
                    lines.setdefault(present[line], set()).update(found)
        return lines


@cache
def _present_lines(before: str, after: str) -> dict[int, int]:
    """Return the present numbers of the lines of a text that are still there."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return {
        old + at + 1: new + at + 1
        for old, new, count in matcher.get_matching_blocks()
        for at in range(count)
    }


def _in_turns(tests: Iterable[str]) -> Iterator[str]:
    """Yield the first test of each file, then the second of each: a hundred of one file are alike."""
    of_files: dict[str, list[str]] = {}
    for test in tests:
        of_files.setdefault(_file(test), []).append(test)
    for turn in zip_longest(*of_files.values()):
        yield from filter(None, turn)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _importers(files: Iterable[str]) -> dict[str, set[str]]:
    """Return the files of tests that import each module, by its dotted name."""
    importers: dict[str, set[str]] = {}
    for file in files:
        path = ROOT / file
        if path.exists():
            for name in _imported(ast.parse(path.read_bytes())):
                importers.setdefault(name, set()).add(file)
    return importers


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_in_function(module: str, line: int) -> bool:
    """True for a line that runs with a call, and not at the import of the module."""
    return any(
        node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse((ROOT / module).read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _dotted(module: str) -> str:
    """Return the name by which a module is imported; `cmd` is not a package."""
    parts = [part for part in Path(module).with_suffix("").parts if part != "__init__"]
    return ".".join(parts[1:] if parts[0] == "cmd" else parts)
