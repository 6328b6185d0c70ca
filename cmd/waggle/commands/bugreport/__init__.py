"""``waggle bugreport``: an archive with the state of an agent and its input, without secrets."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import platform
import stat
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from resources.manifests.files import MISSING, scan, unreadable
from waggle import ask_agent, output
from waggle.manifest_flag import add_manifest_flag, manifest_paths
from waggle.output import EXIT_ERROR, EXIT_OK, EXIT_USAGE, NO_AGENT, USAGE, member
from waggle.tables import Column

if TYPE_CHECKING:
    from waggle.commands.bugreport.redaction import Redaction

COLUMNS = (
    Column("FILE", member("name")),
    Column("OCTETS", member("octets"), right=True),
    Column("ERROR", member("error"), minor=1, beneath=True),
)
MAX_ROUTES = "10000"
MAX_LOG_OCTETS = 8 * 1024 * 1024
"""The end of a log, which is what happened last."""
MAX_FILE_OCTETS = 8 * 1024 * 1024
"""A larger file of manifests or configuration is named, and not included."""
NOT_READ = "it is not included, as its secrets are not known"
"""Of a file that may have a Secret, without the structure that shows where."""
MAX_PART_OCTETS = 32 * 1024 * 1024
"""A larger answer is named, and not included."""
PATHS: tuple[tuple[str, str, dict[str, str | None]], ...] = (
    ("status", "/v1/status", {}),
    ("process", "/v1/process", {}),
    ("host", "/v1/host", {}),
    ("cells", "/v1/cells", {}),
    ("health", "/v1/health", {}),
    ("log-level", "/v1/log", {}),
    ("peers", "/v1/peers", {}),
    ("bfd", "/v1/bfd", {}),
    ("reconcilers", "/v1/reconcilers", {}),
    ("intent", "/v1/intent", {}),
    ("explain", "/v1/explain", {}),
    ("routes-advertised", "/v1/routes", {"table": "advertised", "limit": MAX_ROUTES}),
    ("routes-received", "/v1/routes", {"table": "received", "limit": MAX_ROUTES}),
    ("routes-available", "/v1/routes", {"table": "available", "limit": MAX_ROUTES}),
    ("routes-kernel", "/v1/kernel-routes", {"limit": MAX_ROUTES}),
    ("history", "/v1/history", {}),
    ("events", "/v1/events", {}),
    ("metrics", "/v1/metrics", {}),
)
"""Answers of the agent: the name of the file, the path, the query."""
OFF = "the agent has none: a cell is off, or it has no API server"
"""Of an answer that not every agent has."""
VARIABLES = ("WAGGLE_", "KUBERNETES_", "OTEL_", "LANG", "LC_", "TERM", "PYTHON", "TZ", "XDG_")
"""Variables that a report has, by the begin of their names; of others it has neither."""


class Part(NamedTuple):
    """A file of the archive, or why it is missing."""

    name: str
    content: object
    """JSON, or text."""
    error: str = ""
    path: str = ""
    """The file that it is read from."""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "bugreport",
        help="write an archive with the state of the agent, for a report, without secrets",
        description="Write an archive with what an agent answers, its files and its environment. "
        "Passwords, tokens and keys are replaced, wherever they stand; names, addresses and labels "
        "are not. Read it before you pass it on.",
        epilog=output.exit_statuses(
            {
                EXIT_OK: "success",
                EXIT_ERROR: f"{NO_AGENT}, or a named file cannot be read (the archive has the rest and "
                "the reason), or the archive cannot be written",
                EXIT_USAGE: f"{USAGE}, or a named file that does not exist",
            },
            "examples:\n"
            "  waggle bugreport -f /etc/waggle/manifests --config /etc/waggle/agent.yaml\n"
            "  kubectl -n waggle-system exec POD -- waggle bugreport -O - > report.tar.gz",
        ),
    )
    add_manifest_flag(parser, required=False, description="manifests that the agent reads")
    parser.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="configuration of the agent"
    )
    parser.add_argument(
        "--log", action="append", default=[], metavar="FILE", help="a log; may be repeated"
    )
    parser.add_argument(
        "-O",
        "--archive",
        metavar="FILE",
        help="the archive; -: standard output (default: waggle-bugreport-HOST-TIME.tar.gz)",
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Write the archive; returns the exit status."""
    now = time.gmtime()
    if args.archive == "-" and sys.stdout.isatty():
        output.complain(
            args.prog, "an archive is no text for a terminal: redirect it, or name a file"
        )
        return EXIT_USAGE
    named = [*manifest_paths(args), *args.config, *args.log]
    missing = [path for path in named if not _exists(path)]
    for path in missing:
        output.complain(args.prog, f"{path}: {MISSING}")
    if missing:
        return EXIT_USAGE
    files = list(_files(args))
    parts = [Part("host.json", _host(now)), *files, *_answers(args)]
    name = f"waggle-bugreport-{platform.node()}-{time.strftime('%Y%m%dT%H%M%SZ', now)}"
    archive, items = _archive(name, parts, dict(os.environ))
    target = args.archive or f"{name}.tar.gz"
    try:
        if target == "-":
            sys.stdout.buffer.write(archive)
        else:
            _write(target, archive)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = "standard output" if target == "-" else target
        output.complain(args.prog, f"{place}: {error.strerror or error}")
        return EXIT_ERROR
    if target != "-":
        output.show(output.document("BugreportList", items), COLUMNS, args)
        output.complain(args.prog, f"written: {target}")
    unread = [part for part in files if part.error and part.path in named]
    for part in unread:
        output.complain(args.prog, f"{part.path}: {part.error}")
    return EXIT_ERROR if unread or _silent(parts) else EXIT_OK


def _write(target: str, archive: bytes) -> None:
    """Write a file that only this user may read, whole or not at all. Raises OSError.

    A file of that name is replaced, and neither written nor followed: another user may have it open, or
    have made it a link to a file of this user. What is no file (a pipe, a device) gets the archive.
    """
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "is a symbolic link; -O - writes to standard output")
    if not stat.S_ISREG(mode):
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_NOFOLLOW), "wb") as device:
            device.write(archive)
        return
    descriptor, temporary = tempfile.mkstemp(prefix=".waggle-bugreport-", dir=Path(target).parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(archive)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink()
        raise


def _silent(parts: list[Part]) -> bool:
    """Return whether the agent has answered nothing."""
    answers = [part for part in parts if part.name.startswith("agent/")]
    return all(part.error for part in answers)


def _host(now: time.struct_time) -> dict[str, Any]:
    import importlib.metadata

    return {
        "waggle": importlib.metadata.version("waggle-bgp"),
        "python": sys.version,
        "platform": platform.platform(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
        "user": os.geteuid(),
        "environment": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)
        },
    }


def _answers(args: argparse.Namespace) -> Iterator[Part]:
    """Yield what the agent answers; paths of cells that are off are named with the error."""

    def request(path: str, query: dict[str, str | None]) -> dict[str, Any]:
        return ask_agent.of_cell(args, lambda agent: agent.get(path, query), OFF)

    for name, path, query in PATHS:
        try:
            yield Part(f"agent/{name}.json", request(path, query))
        except ask_agent.AgentError as error:
            yield Part(f"agent/{name}.json", None, str(error))


def _exists(path: str) -> bool:
    """Return whether a file exists, as far as it can be determined."""
    try:
        os.stat(path)  # noqa: PTH116  as `resources.manifests.files`
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _files(args: argparse.Namespace) -> Iterator[Part]:
    """Yield manifests, configurations and logs. What cannot be read is a part with the reason."""
    for root in manifest_paths(args):
        scanned = scan([root])
        for path in scanned.files:
            yield _read(f"manifests/{_inside(path, root)}", path, _structured)
        for path, reason in {**scanned.skipped, **scanned.broken_links}.items():
            yield Part(f"manifests/{_inside(path, root)}", None, reason, path)
    for path in args.config:
        yield _read(f"config/{Path(path).name}", path, _structured)
    for path in args.log:
        yield _read(f"log/{Path(path).name}", path, _end_of_log)


def _read(name: str, path: str, read: Callable[[str, BinaryIO], Part]) -> Part:
    """Read one file, which may have gone or changed since it was found."""
    try:
        # Without waiting for the writer of a pipe.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as file:
            return read(name, file)._replace(path=path)
    except OSError as error:
        return Part(name, None, unreadable(error), path)


def _inside(file: str, root: str) -> str:
    """Return the name of a file below the directory that was named; its own where it was named."""
    inside = os.path.relpath(file, root)
    return Path(file).name if inside == os.curdir else inside


def _end_of_log(name: str, file: BinaryIO) -> Part:
    file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_LOG_OCTETS))
    return Part(name, file.read(MAX_LOG_OCTETS).decode(errors="replace"))


def _structured(name: str, file: BinaryIO) -> Part:
    """Read YAML or JSON. What cannot be parsed is text, unless it may have a Secret."""
    from resources.manifests.yamlfile import YamlError, parse_yaml

    data = file.read(MAX_FILE_OCTETS + 1)
    if len(data) > MAX_FILE_OCTETS:
        return Part(name, None, f"larger than {MAX_FILE_OCTETS:,} octets")
    try:
        return Part(f"{name}.json", [document.value for document in parse_yaml(data)])
    except YamlError as error:
        if b"secret" in data.lower():
            return Part(name, None, f"line {error.line}: {error.message}; {NOT_READ}")
        return Part(name, data.decode(errors="replace"))


def _archive(
    name: str, parts: list[Part], environ: dict[str, str]
) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the archive, and an item for each part. All secrets are known before any is written."""
    from waggle.commands.bugreport.redaction import Redaction

    redaction = Redaction()
    redaction.learn_environment(environ)
    parts = [_learned(part, redaction) for part in parts]
    packed, items = io.BytesIO(), []
    names: Counter[str] = Counter()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for part in parts:
            if part.error:
                items.append({"name": part.name, "octets": 0, "error": redaction.text(part.error)})
                continue
            data = _encoded(redaction.document(part.content))
            if len(data) > MAX_PART_OCTETS:
                items.append({"name": part.name, "octets": 0, "error": f"{len(data):,} octets"})
                continue
            # Two files may have one name: two logs of one name, in two directories.
            names[part.name] += 1
            number = f"{names[part.name]}-" if names[part.name] > 1 else ""
            info = tarfile.TarInfo(f"{name}/{number}{redaction.text(part.name)}")
            info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
            archive.addfile(info, io.BytesIO(data))
            items.append({"name": number + part.name, "octets": len(data)})
    return packed.getvalue(), items


def _learned(part: Part, redaction: Redaction) -> Part:
    """Collect the secrets of a part, which is omitted where it is nested too deeply for that."""
    try:
        redaction.learn(part.content)
        _encoded(part.content)
    except RecursionError:
        return Part(part.name, None, "nested too deeply")
    return part


def _encoded(content: object) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content, indent=1, default=str)
    return text.encode(errors="replace")
