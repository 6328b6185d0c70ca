"""Programs of this project as processes that another process forks, which has imported all of it once.

A start takes a few hundredths of a second of CPU time in place of half a second, most of which is
imports. In all else the process is the program: arguments, environment, output, network namespace and
session are its own, and it dies with the test process.

``python -m tests.support.forked FD`` is the process that forks; `start` starts it, and is its client.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_OWN: Final = ("waggle", "waggle_agent", "waggle_operator")
PROGRAMS: Final = (*_OWN, "tests.dialects.dialect_programs", "tests.dialects.neutral_model")
FORKED: Final = "tests.support.forked"
"""The audit event of a forked process that has its environment."""
_PACKAGES: Final = (*_OWN, "cells", "reconcilers", "resources", "speaker", "statedb")
_IMPORTED_LATE: Final = (
    "encodings.idna",
    "encodings.utf_8_sig",
    "reactivex.observable.fromiterable",
    "reactivex.observable.merge",
    "reactivex.operators._filter",
    "reactivex.operators._map",
    "reactivex.operators._merge",
    "reactivex.operators._take",
)
"""What a running agent imports of other packages."""
_READ_BY_IMPORTS: Final = ("PYTHON", "WAGGLE_PURE")
"""Prefixes of variables that have an effect while modules are imported."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG: Final = 1
_CLONE_NEWNET: Final = 0x40000000
_NAMESPACES: Final = Path("/run/netns")
_REQUEST_OCTETS: Final = 1 << 18


class Process:
    """A running program, with what `subprocess.Popen` has of one."""

    def __init__(self, pid: int, command: Sequence[str]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._command = command
        self._ended = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises ``subprocess.TimeoutExpired``."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(list(self._command), timeout or 0)
        return status

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self._ended, number)

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            # The process that forks is its parent, and has its status.
            self.returncode = _server().request({"reap": self.pid})
            os.close(self._ended)
        return self.returncode


def start(command: Sequence[str], environment: Mapping[str, str], output: int) -> Process | None:
    """Start a program in a session of its own, perhaps after ``ip netns exec NAME``.

    ``output`` is the descriptor for its output and errors. None: it has to be started otherwise, as
    another program, or a process whose environment has an effect on imports.
    """
    program = list(command)
    namespace = ""
    if program[:3] == ["ip", "netns", "exec"]:
        namespace, program = program[3], program[4:]
    names = {name for name in {*environment, *os.environ} if name.startswith(_READ_BY_IMPORTS)}
    if (
        program[:2] != [sys.executable, "-m"]
        or program[2] not in PROGRAMS
        or any(environment.get(name) != os.environ.get(name) for name in names)
    ):
        return None
    request = {
        "arguments": program[2:],
        "namespace": namespace,
        "directory": str(Path.cwd()),
        "environment": dict(environment),
    }
    return Process(_server().request(request, output), program)


class _Server:
    """The client of the process that forks."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket, self._lock = ours, threading.Lock()
        for side in (ours, theirs):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST_OCTETS)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forked", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parents[2],
            )
        atexit.register(self._close)

    def _close(self) -> None:
        """End the process; its children end with it."""
        self._socket.close()
        self._process.wait()

    def request(self, what: Mapping[str, Any], *descriptors: int) -> int:
        """Return the number that the answer has."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(what).encode()], descriptors)
            return int(self._socket.recv(64))


@functools.cache
def _server() -> _Server:
    return _Server()


def _serve(fd: int) -> list[str] | None:
    """Fork a program for each request; in such a process return its arguments, at the end None."""
    with socket.socket(fileno=fd) as client:
        while True:
            octets, descriptors, _, _ = socket.recv_fds(client, _REQUEST_OCTETS, 1)
            if not octets:
                return None
            request = json.loads(octets)
            if "reap" in request:
                _, status = os.waitpid(request["reap"], 0)
                client.send(str(os.waitstatus_to_exitcode(status)).encode())
                continue
            pid = os.fork()
            if not pid:
                client.close()
                _become(request, descriptors[0])
                arguments: list[str] = request["arguments"]
                return arguments
            os.close(descriptors[0])
            client.send(str(pid).encode())


def _become(request: Mapping[str, Any], output: int) -> None:
    """Give this process what a new one of the request would have."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    if request["namespace"]:
        with (_NAMESPACES / request["namespace"]).open() as namespace:
            if _LIBC.setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns", request["namespace"])
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.audit(FORKED)


def _import_everything() -> None:
    for package in _PACKAGES:
        module = importlib.import_module(package)
        for found in pkgutil.walk_packages(module.__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                # The prefix table in C may not be built.
                with contextlib.suppress(ImportError):
                    importlib.import_module(found.name)
    for name in _IMPORTED_LATE:
        importlib.import_module(name)


def _evaluate_annotations() -> None:
    """Fill the caches that every start fills: half of what one computes are annotations."""
    from cells.agent import agent_cells
    from cells.hive.graph import needs
    from cells.operator.cells import operator_cells
    from resources import schema
    from resources.meta import Resource
    from resources.option_spelling import describe
    from waggle.dialects import DIALECTS

    for cell in (*agent_cells(*DIALECTS), *operator_cells(*DIALECTS)):
        describe(cell.name, cell.options)
        made = (*cell.provided(), *cell.kept(), *cell.invoked(), *cell.contributed())
        for provider in made:
            needs(provider.make)
    rows: list[type] = [Resource]
    for row in rows:
        rows += row.__subclasses__()
    for row in rows:
        parts = [*schema._fields_of(row).nested.values()]
        for part in parts:
            parts += part.items
        rows += {inner for part in parts for inner in part.rows} - {*rows}


def main() -> None:
    """Fork programs until the test process ends, or be one of them."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _import_everything()
    _evaluate_annotations()
    gc.collect()
    gc.freeze()
    arguments = _serve(int(sys.argv[1]))
    if arguments is not None:
        sys.argv[1:] = arguments[1:]
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
