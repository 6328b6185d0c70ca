"""``waggle bugreport``: an archive with the state of an agent and its input, without secrets."""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import stat
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from waggle import ask_agent, output
from waggle.manifest_flag import add_manifest_flag, manifest_paths
from waggle.output import EXIT_ERROR, EXIT_OK, EXIT_USAGE, NO_AGENT, USAGE, member
from waggle.tables import Column

COLUMNS = (
    Column("FILE", member("name")),
    Column("OCTETS", member("octets"), right=True),
    Column("ERROR", member("error"), minor=1, beneath=True),
)
MAX_ROUTES = "10000"
MAX_LOG_OCTETS = 8 * 1024 * 1024
"""The end of a log, which is what happened last."""
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
)
"""What is asked of the agent: the name of the file, the path, the query."""
VARIABLES = ("WAGGLE_", "KUBERNETES_", "OTEL_", "LANG", "LC_", "TERM", "PYTHON", "TZ", "XDG_")
"""Variables that a report has, by the begin of their names; of others it has neither."""


class Part(NamedTuple):
    """A file of the archive, or why it is missing."""

    name: str
    content: object
    """JSON, or text."""
    error: str = ""


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
                EXIT_ERROR: f"{NO_AGENT} (the archive has the rest), or it cannot be written",
                EXIT_USAGE: f"{USAGE}, or an unreadable file",
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
    try:
        files = list(_files(args))
    except OSError as error:
        output.complain(args.prog, output.reason_of(error))
        return EXIT_USAGE
    parts = [Part("host.json", _host(now)), *files, *_answers(args)]
    name = f"waggle-bugreport-{platform.node()}-{time.strftime('%Y%m%dT%H%M%SZ', now)}"
    archive, items = _archive(name, parts, dict(os.environ))
    target = args.archive or f"{name}.tar.gz"
    try:
        if target == "-":
            sys.stdout.buffer.write(archive)
        else:
            _write(target, archive)
    except OSError as error:
        output.complain(args.prog, output.reason_of(error))
        return EXIT_ERROR
    if target != "-":
        if args.output in output.TABLES:
            output.table(COLUMNS, items, args)
        else:
            output.dump(output.document("BugreportList", items), args.output)
        output.complain(args.prog, f"written: {target}")
    return EXIT_ERROR if _silent(parts) else EXIT_OK


def _write(target: str, archive: bytes) -> None:
    """Write a file that only this user may read; a device stays as it is. Raises OSError."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)
        file.write(archive)


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
    for name, path, query in PATHS:
        try:
            yield Part(f"agent/{name}.json", ask_agent.client(args).get(path, query))
        except ask_agent.AgentError as error:
            yield Part(f"agent/{name}.json", None, str(error))


def _files(args: argparse.Namespace) -> Iterator[Part]:
    """Yield manifests, configurations and logs. Raises OSError."""
    for text in manifest_paths(args):
        path = Path(text)
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and (file == path or file.suffix in (".yaml", ".yml", ".json")):
                yield _structured(f"manifests/{_inside(file, path)}", file)
    for text in args.config:
        yield _structured(f"config/{Path(text).name}", Path(text))
    for text in args.log:
        with Path(text).open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - MAX_LOG_OCTETS))
            yield Part(f"log/{Path(text).name}", log.read().decode(errors="replace"))


def _inside(file: Path, path: Path) -> str:
    return file.name if file == path else file.relative_to(path).as_posix()


def _structured(name: str, path: Path) -> Part:
    """Read YAML or JSON; what is neither is text."""
    import yaml

    text = path.read_text(errors="replace")
    try:
        return Part(f"{name}.json", list(yaml.safe_load_all(text)))
    except (yaml.YAMLError, ValueError, RecursionError):
        return Part(name, text)


def _archive(
    name: str, parts: list[Part], environ: dict[str, str]
) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the archive, and an item for each part. All secrets are known before any is written."""
    from waggle.redaction import Redaction

    redaction = Redaction()
    redaction.learn_environment(environ)
    for part in parts:
        redaction.learn(part.content)
    packed, items = io.BytesIO(), []
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for part in parts:
            if part.error:
                items.append({"name": part.name, "octets": 0, "error": redaction.text(part.error)})
                continue
            content = redaction.document(part.content)
            text = (
                content if isinstance(content, str) else json.dumps(content, indent=1, default=str)
            )
            data = text.encode()
            info = tarfile.TarInfo(f"{name}/{redaction.text(part.name)}")
            info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
            archive.addfile(info, io.BytesIO(data))
            items.append({"name": part.name, "octets": len(data)})
    return packed.getvalue(), items
