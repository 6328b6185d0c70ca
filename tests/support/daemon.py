"""A program that runs as a process of its own for the time of a test.

Started in the foreground, perhaps inside a network namespace, its output in a file; ended by its
process id, never by name. It dies with the test process, also when that is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import forked
from tests.support.netns import Namespace

LOG_TAIL = 4000
END_SECONDS = 20.0
"""Of a program that is to end by itself, on a machine that is busy with others; then it is killed."""
NO_AUTHORITIES = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
"""This machine's authorities, which no program here trusts, take each start 50 ms to read."""


class Daemon:
    """One process; ``log`` is the file with its standard output and error."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        namespace: Namespace | None = None,
        environment: Mapping[str, str] | None = None,
        forks: bool = True,
    ) -> None:
        """``forks``: programs of this project may be forked (`tests.support.forked`)."""
        self.name = name
        self._forks = forks
        self.command = [str(part) for part in command]
        self.log = log
        self.namespace = namespace
        self.environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | forked.Process | None = None

    def start(self) -> None:
        """Start it, from the main thread: its life is tied to the thread that starts it."""
        prefix = self.namespace.command() if self.namespace is not None else []
        environment = {**os.environ, **NO_AUTHORITIES, **self.environment}
        with self.log.open("ab") as output:
            if self._forks:
                command = [*prefix, *self.command]
                self._process = forked.start(command, environment, output.fileno())
                if self._process is not None:
                    return
            if shutil.which("setpriv"):
                prefix = [*prefix, "setpriv", "--pdeathsig", "KILL"]
            self._process = subprocess.Popen(
                [*prefix, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id of a started program."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """Fail with the end of the log if the program has ended."""
        assert self._process is not None, f"{self.name} was not started"
        status = self._process.poll()
        if status is not None:
            # Not an AssertionError, which would be waited for.
            raise RuntimeError(f"{self.name} ended with status {status}:\n{self.tail()}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop it where it is, with all of its children; its connections' kernel goes on."""
        os.killpg(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen one go on."""
        os.killpg(self.pid, signal.SIGCONT)

    def wait(self, timeout: float) -> int:
        """Wait for its end and give the exit status; raises ``subprocess.TimeoutExpired``."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.wait(timeout)

    def stop(self, timeout: float = END_SECONDS) -> int | None:
        """End it: SIGTERM, and SIGKILL after ``timeout`` seconds. Gives the exit status."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return self._process.returncode

    def kill(self) -> None:
        """End it as a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def tail(self) -> str:
        """Return the end of what it wrote."""
        if not self.log.exists():
            return f"--- {self.name} wrote nothing"
        text = self.log.read_text(errors="replace")
        return f"--- end of {self.log.name} of {self.name}\n{text[-LOG_TAIL:]}"
