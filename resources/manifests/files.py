"""Which files of a directory tree are manifests, and whether one has changed.

Hidden files, editors' swap and backup files and anything that is not a regular file are left alone.
Links are followed (a ConfigMap's volume is made of them) as long as they stay within the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MAX_DEPTH = 16


class Signature(NamedTuple):
    """Changes whenever a file's content may have."""

    modified_ns: int
    size: int
    inode: int


class Found(NamedTuple):
    """What a scan found."""

    files: dict[str, Signature]
    skipped: dict[str, str]
    """Files that look like manifests and cannot be read as such, with the reason."""


def is_manifest_name(name: str) -> bool:
    """Tell whether a file's name is that of a manifest."""
    return not name.startswith((".", "#")) and os.path.splitext(name)[1] in SUFFIXES  # noqa: PTH122


def signature(path: str) -> Signature | str | None:
    """Tell a file's signature, why it is not read, or None when it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116  the hot path of every change
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return None if stat.S_ISDIR(status.st_mode) else "is not a regular file"
    return Signature(status.st_mtime_ns, status.st_size, status.st_ino)


def scan(roots: Iterable[str]) -> Found:
    """Find the manifests below directories, and the files that are named themselves."""
    found = Found({}, {})
    for root in roots:
        if Path(root).is_dir():
            for path in _walk(root, os.path.realpath(root), 0):
                _note(found, path)
        else:
            _note(found, root)
    return found


def _note(found: Found, path: str) -> None:
    sign = signature(path)
    if isinstance(sign, Signature):
        found.files[path] = sign
    elif sign is not None:
        found.skipped[path] = sign


def _walk(directory: str, root: str, depth: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and not _within(entry.path, root):
            continue
        if entry.is_dir():
            # The depth ends a loop of links, which `_within` alone would let go on.
            if depth < MAX_DEPTH:
                yield from _walk(entry.path, root, depth + 1)
        elif is_manifest_name(entry.name):
            yield entry.path


def _within(path: str, root: str) -> bool:
    target = os.path.realpath(path)
    return target == root or target.startswith(root + os.sep)
