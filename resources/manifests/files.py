"""Finds the manifest files of a directory tree, and detects changes.

Hidden files, swap and backup files of editors and everything but regular files are ignored. Symbolic
links are followed (a ConfigMap's volume consists of them) if they stay within the tree; a link
to a directory above it is not, as that is read already. An entry that cannot be read is reported in
`ScanResult`, whatever the system call raises, and no other entry depends on it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
MAX_DEPTH = 16
MISSING = "there is no such file or directory"
DANGLING = "is a link to a file that does not exist"
OUTSIDE = "is a link out of the directory, and not followed"
NO_TEXT = "its name is not UTF-8"


class Signature(NamedTuple):
    """Differs if a file's content may have changed."""

    modified_ns: int
    size: int
    inode: int


class ScanResult(NamedTuple):
    """The manifest files of a scan."""

    files: dict[str, Signature]
    skipped: dict[str, str]
    """Entries that cannot be read (manifests, directories, links to either), with the reason."""
    directories: dict[str, None]
    """The directories that were read, in order."""
    broken_links: dict[str, str]
    """Links that are not followed, to what does not exist or out of the tree, with the reason."""
    missing: tuple[str, ...] = ()
    """The roots that do not exist."""


def reason_of(error: OSError) -> str:
    """Return the text of an `OSError` about manifest files; its type's name if it has none."""
    return error.strerror or str(error) or type(error).__name__


def unreadable(error: OSError) -> str:
    """Return the reason why a manifest file or directory cannot be read."""
    return f"cannot be read: {reason_of(error)}"


def is_manifest_name(name: str) -> bool:
    """True if a file has the name of a manifest."""
    return not name.startswith((".", "#")) and os.path.splitext(name)[1] in SUFFIXES  # noqa: PTH122


def as_text(path: str) -> str:
    """Return a file's path for messages and documents: octets that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def signature(path: str) -> Signature | str | None:
    """Return a manifest file's signature, the reason why it is not read, or None without a file."""
    try:
        status = os.stat(path)  # noqa: PTH116  the hot path of every change
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return unreadable(error)
    if not stat.S_ISREG(status.st_mode):
        return None if stat.S_ISDIR(status.st_mode) else "is not a regular file"
    return Signature(status.st_mtime_ns, status.st_size, status.st_ino)


def scan(roots: Iterable[str]) -> ScanResult:
    """Find the manifest files below directories; a root may also be a file."""
    result = ScanResult({}, {}, {}, {})
    missing = []
    for root in roots:
        if as_text(root) != root:
            result.skipped[as_text(root)] = NO_TEXT
            continue
        try:
            is_directory = stat.S_ISDIR(os.stat(root).st_mode)  # noqa: PTH116  as `signature`
            real = os.path.realpath(root)
        except (FileNotFoundError, NotADirectoryError):
            missing.append(root)
            continue
        except OSError as error:
            result.skipped[root] = unreadable(error)
            continue
        if is_directory:
            for path in _walk(root, real, 0, result):
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
    elif os.path.islink(path):  # noqa: PTH114
        result.broken_links[path] = DANGLING


def _walk(directory: str, root: str, depth: int, result: ScanResult) -> Iterator[str]:
    """Yield the paths named as manifests; ``root`` is the real path of the tree."""
    try:
        with os.scandir(directory) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        result.skipped[directory] = unreadable(error)
        return
    result.directories[directory] = None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = as_text(entry.path)
        try:
            is_directory = _is_directory(entry, root)
        except (FileNotFoundError, NotADirectoryError):
            # If it is no link, it is gone since the directory was listed.
            if os.path.islink(entry.path):  # noqa: PTH114
                result.broken_links[path] = DANGLING
            continue
        except OSError as error:
            result.skipped[path] = unreadable(error)
            continue
        if is_directory is None and _leads_out(entry, root):
            result.broken_links[path] = OUTSIDE
        if is_directory is None or not (is_directory or is_manifest_name(entry.name)):
            continue
        if path != entry.path:
            result.skipped[path] = NO_TEXT
        elif not is_directory:
            yield path
        elif depth < MAX_DEPTH:
            yield from _walk(path, root, depth + 1, result)


def _is_directory(entry: os.DirEntry[str], root: str) -> bool | None:
    """Return whether an entry is a directory; None for a link that is not followed.

    Raises `OSError` where that cannot be determined.
    """
    if not entry.is_symlink():
        return entry.is_dir()
    target = os.path.realpath(entry.path)
    if not _within(target, root):
        return None
    # `DirEntry.is_dir` is False where the target does not exist, which is an error here.
    is_directory = stat.S_ISDIR(entry.stat().st_mode)
    above = os.path.realpath(os.path.dirname(entry.path))  # noqa: PTH120
    return None if is_directory and _within(above, target) else is_directory


def _leads_out(entry: os.DirEntry[str], root: str) -> bool:
    """True for a link out of the tree that would be read: named as a manifest, or to a directory."""
    read = is_manifest_name(entry.name) or os.path.isdir(entry.path)  # noqa: PTH112
    return read and not _within(os.path.realpath(entry.path), root)


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(os.path.join(root, ""))  # noqa: PTH118
