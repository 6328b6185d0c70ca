"""Builds helm, a Kubernetes API server, Jaeger and GoBGP for the tests while other tests run.

``python -m tests.support.builds COMMAND...`` runs a command, the tests, and beside it
the ``install-*`` scripts of `SCRIPTS`, which do nothing where their programs are there. Tests that need
these wait for them (`wait`), outside their own time limit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

HERE: Final = Path(__file__).parent
SCRIPTS: Final = ("install-helm", "install-apiserver", "install-jaeger", "install-gobgp")
"""Helm first, as it takes less time; Jaeger and GoBGP are built for one file of tests each."""
POLL_SECONDS: Final = 1.0


def cache() -> Path:
    """Return the folder of what is built, which both scripts use."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "waggle-tests"


def is_building(directory: Path) -> bool:
    """Return whether a process builds programs into the folder: it holds the lock for its life."""
    try:
        with (directory / "building").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def wait(is_there: Callable[[], bool], directory: Path, poll_seconds: float = POLL_SECONDS) -> None:
    """Wait until a program is there, or no process builds any."""
    while not is_there() and is_building(directory):
        time.sleep(poll_seconds)


def _locked(file: IO[str]) -> bool:
    """Lock a file unless another process builds; to ask is to hold the lock for a moment."""
    for _ in range(20):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return True
    return False


@contextlib.contextmanager
def building(directory: Path, scripts: Sequence[Path]) -> Iterator[None]:
    """Run scripts one after the other in the background; what runs at the end of the block is ended."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "building").open("w") as lock:
        if not _locked(lock):
            yield
            return
        # The scripts inherit the lock: it is released once the last of them has ended.
        process = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                'for script; do "$script" >/dev/null; done',
                "sh",
                *map(str, scripts),
            ],
            pass_fds=(lock.fileno(),),
            start_new_session=True,
        )
    try:
        yield
    finally:
        if process.poll() is None:
            sys.stderr.write("programs for tests are not built to their end; make test goes on\n")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            # A script may end after the shell that started it.
            wait(lambda: False, directory, poll_seconds=0.05)
        process.wait()


def main(command: Sequence[str]) -> int:
    """Run a command beside the builds; returns its exit status."""
    with building(cache(), [HERE / script for script in SCRIPTS]):
        process = subprocess.Popen(command)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                # The terminal has sent it to the command as well, which prints its summary.
                continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
