"""A program that listens on a Unix socket for an agent, and the agent's end of a connection to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from reconcilers.process.codec import Codec
from tests.support.wait import FACTOR

SECONDS: Final = 60.0 * FACTOR
START_SECONDS: Final = 120.0
"""Until a program listens: on an emulated machine too."""
END_SECONDS: Final = 60.0 * FACTOR
M = TypeVar("M")
K = TypeVar("K")


class SocketProgram(Generic[M]):
    """A process, and messages to and from it."""

    def __init__(self, command: Sequence[str], path: Path, codec: Codec[M], hello: M) -> None:
        """``path``: of the socket; ``hello``: the first message in both directions."""
        self._command = command
        self.path = path
        self._codec = codec
        self._hello = hello
        self._decoder = codec.decoder()
        self._received: list[Any] = []
        self._socket: socket.socket | None = None
        self.start()

    def start(self) -> None:
        """Start the program, after it was killed too."""
        top = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": f"{top}:{top / 'cmd'}"}
        self.process = subprocess.Popen(self._command, cwd=top, env=environment)

    def kill(self) -> None:
        """Kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(END_SECONDS)

    def end(self) -> None:
        """End it as Kubernetes does."""
        self.disconnect()
        self.process.terminate()
        self.process.wait(END_SECONDS)

    def disconnect(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def greet(self) -> None:
        """Connect, in place of the connection before, and greet."""
        self.disconnect()
        self._decoder, self._received = self._codec.decoder(), []
        until = time.monotonic() + START_SECONDS
        while True:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(SECONDS)
            try:
                self._socket.connect(str(self.path))
                break
            except OSError:
                self._socket.close()
                assert time.monotonic() < until, "the program does not listen"
                time.sleep(0.01)
        self.send(self._hello)
        self.expect(type(self._hello))

    def send(self, *messages: M) -> None:
        """Send messages, which arrive together if they are short."""
        assert self._socket is not None
        self._socket.sendall(b"".join(map(self._codec.encode, messages)))

    def expect(self, kind: type[K], right: Callable[[K], bool] = lambda _: True) -> K:
        """Wait for a message of a kind, and drop messages of the kind that are not right."""
        assert self._socket is not None
        while True:
            for message in self._received:
                if isinstance(message, kind):
                    self._received.remove(message)
                    if right(message):
                        return message
                    break
            else:
                octets = self._socket.recv(1 << 20)
                if not octets:
                    raise ConnectionError("the program closed the connection")
                self._received += self._decoder.feed(octets)

    def drained(self) -> list[Any]:
        """Return what has been received and not been expected."""
        found, self._received = self._received, []
        return found
