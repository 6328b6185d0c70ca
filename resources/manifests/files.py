"""Finds the manifest files of a directory tree, and detects changes.

Hidden files, swap and backup files of editors and everything but regular files are ignored. Symbolic
links are followed (a ConfigMap's volume consists of them) if they stay within the tree.
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
    """Differs if a file's content may have changed."""

    modified_ns: int
    size: int
    inode: int


class ScanResult(NamedTuple):
    """The manifest files of a scan."""

    files: dict[str, Signature]
    skipped: dict[str, str]
    """Files named as manifests and directories that cannot be read, with the reason."""
    directories: dict[str, None]
    """The directories that were read, in order."""
    missing: tuple[str, ...] = ()
    """The roots that do not exist."""


def is_manifest_name(name: str) -> bool:
    """True if a file has the name of a manifest."""
    return not name.startswith((".", "#")) and os.path.splitext(name)[1] in SUFFIXES  # noqa: PTH122


def signature(path: str) -> Signature | str | None:
    """Return a file's signature, the reason why it is not read, or None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116  the hot path of every change
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return None if stat.S_ISDIR(status.st_mode) else "is not a regular file"
    return Signature(status.st_mtime_ns, status.st_size, status.st_ino)


def scan(roots: Iterable[str]) -> ScanResult:
    """Find the manifests below directories; a root may also be a file."""
    result = ScanResult({}, {}, {})
    missing = []
    for root in roots:
        try:
            is_directory = stat.S_ISDIR(Path(root).stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            missing.append(root)
            continue
        except OSError as error:
            result.skipped[root] = f"cannot be read: {error.strerror}"
            continue
        if is_directory:
            for path in _walk(root, os.path.realpath(root), 0, result):
                _add(result, path)
        else:
            _add(result, root)
    return result._replace(missing=tuple(missing))


def _add(result: ScanResult, path: str) -> None:
    sign = signature(path)
    if isinstance(sign, Signature):
        result.files[path] = sign
    elif sign is not None:
        result.skipped[path] = sign


def _walk(directory: str, root: str, depth: int, result: ScanResult) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        result.skipped[directory] = f"cannot be read: {error.strerror}"
        return
    result.directories[directory] = None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and not _within(entry.path, root):
            continue
        if entry.is_dir():
            # The limit ends a loop of links within the tree.
            if depth < MAX_DEPTH:
                yield from _walk(entry.path, root, depth + 1, result)
        elif is_manifest_name(entry.name):
            yield entry.path


def _within(path: str, root: str) -> bool:
    target = os.path.realpath(path)
    return target == root or target.startswith(root + os.sep)
