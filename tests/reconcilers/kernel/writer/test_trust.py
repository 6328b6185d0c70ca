"""Which processes a writer serves, by the socket: one in no folder has no mode that admits a group."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import pytest

from reconcilers.process.connection import is_trusted


class _Agent:
    """The writer's end of a connection from a process of another user, of our group."""

    def __init__(self, address: str | bytes) -> None:
        self._address = address

    def getsockname(self) -> str | bytes:
        return self._address

    def getsockopt(self, *_: int) -> bytes:
        return struct.pack("=iII", 1, os.geteuid() + 1, os.getegid())


@pytest.mark.parametrize(
    ("address", "trusted"),
    [("/run/waggle-kernel/kernel.sock", True), (b"\0bf6c5", False)],
)
def test_the_group_is_trusted_where_a_file_has_a_mode(
    address: str | bytes, *, trusted: bool
) -> None:
    assert is_trusted(_Agent(address)) is trusted  # type: ignore[arg-type]


def test_our_own_user_is_trusted_on_each_socket(tmp_path: Path) -> None:
    for address in ("", str(tmp_path / "s")):
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as agent:
            listener.bind(address)
            listener.listen()
            agent.connect(listener.getsockname())
            accepted, _ = listener.accept()
            with accepted:
                assert is_trusted(accepted)
