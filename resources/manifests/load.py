"""Reads manifests once, without watching them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from resources.kind import Kind, Kinds
from resources.manifests.catalog import Catalog
from resources.manifests.files import MISSING, as_text, scan, unreadable
from resources.manifests.parse import (
    Parsed,
    Rejected,
    Rewrite,
    parse_file,
    parse_objects,
    size_limit,
)
from resources.source import Replace, SourceProblem


class UnreadablePathError(Exception):
    """A given path that cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


NO_MANIFESTS = "there are no manifests: files with the suffix .yaml, .yml or .json"


class Loaded(NamedTuple):
    """The objects and problems of all files."""

    replacements: list[tuple[Kind[Any], Replace[Any]]]
    problems: tuple[SourceProblem, ...]
    unread: dict[tuple[str, str], int]
    """The number of objects of each kind that is not read, by ``apiVersion`` and ``kind``."""
    rejected: tuple[Rejected, ...] = ()
    """The invalid objects."""

    @property
    def is_empty(self) -> bool:
        """True if the loaded paths have no objects of any kind, and no files that might."""
        has_objects = any(event.objects for _, event in self.replacements)
        files = [problem for problem in self.problems if problem.message != NO_MANIFESTS]
        return not (has_objects or files or self.unread)


def read_file(path: str, size: int, parse: Callable[[str, bytes], Parsed]) -> Parsed | str:
    """Load one manifest file once: its content, or the reason why it cannot be read."""
    if size > size_limit(path):
        return f"{size:,} octets, more than {size_limit(path):,} are not read"
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        return unreadable(error)
    return parse(path, data)


STANDARD_INPUT = "-"


def _below(directory: str, path: str) -> bool:
    return path.startswith(os.path.join(directory, ""))  # noqa: PTH118  as `resources.manifests.files`


def load(
    paths: Iterable[str],
    kinds: Kinds,
    stdin: BinaryIO | None = None,
    rewrite: Rewrite | None = None,
) -> Loaded:
    """Load manifest files and directory trees once; the path ``-`` is ``stdin``, if there is one.

    ``rewrite`` replaces objects before they are decoded.

    Raises `UnreadablePathError` for a path that does not exist or cannot be read; what cannot be read
    in a directory is a problem of that entry.
    """
    given = list(paths)
    scanned = scan(root for root in given if root != STANDARD_INPUT or stdin is None)
    for root in scanned.missing:
        raise UnreadablePathError(root, MISSING)
    for root in map(as_text, given):
        if root in scanned.skipped:
            raise UnreadablePathError(root, scanned.skipped[root])
    catalog = Catalog(kinds)
    rejected: list[Rejected] = []

    def parse(path: str, data: bytes) -> Parsed:
        return parse_file(path, data, kinds, rewrite, rejected)

    for path, sign in scanned.files.items():
        content = read_file(path, sign.size, parse)
        if isinstance(content, str):
            if path in given:
                raise UnreadablePathError(path, content)
            catalog.fail(path, content)
        else:
            catalog.put(path, content)
    for path, reason in scanned.skipped.items():
        catalog.fail(path, reason)
    for path, reason in scanned.broken_links.items():
        catalog.fail(path, reason)
    for root in given:
        if root in scanned.directories and not any(_below(root, path) for path in catalog):
            catalog.fail(root, NO_MANIFESTS)
    if stdin is not None and STANDARD_INPUT in given:
        data = stdin.read(size_limit(STANDARD_INPUT) + 1)
        if len(data) > size_limit(STANDARD_INPUT):
            raise UnreadablePathError(STANDARD_INPUT, "more than is read of standard input")
        catalog.put(STANDARD_INPUT, parse(STANDARD_INPUT, data))
    return Loaded(catalog.replacements(), catalog.problems, catalog.unread, tuple(rejected))


def load_objects(values: Iterable[Any], where: str, kinds: Kinds) -> Loaded:
    """Load objects of another origin than manifest files; problems have ``where``."""
    catalog = Catalog(kinds)
    rejected: list[Rejected] = []
    catalog.put(where, parse_objects(where, values, kinds, rejected))
    return Loaded(catalog.replacements(), catalog.problems, catalog.unread, tuple(rejected))
