"""Whose process listens on the socket of an agent: this user's or root's, or it gets no question."""

from __future__ import annotations

import os
import socket
import struct
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from cells.api.agent_socket import OtherUserError, connected


@pytest.mark.parametrize(
    ("own", "other", "is_answered"),
    [(1000, 1000, True), (1000, 0, True), (1000, 1001, False), (0, 1001, True), (0, 0, True)],
    ids=["the same user", "root", "another user", "asked by root", "root by root"],
)
def test_a_process_of_another_user_is_asked_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: int, other: int, is_answered: bool
) -> None:
    path = tmp_path / "s"

    monkeypatch.setattr(os, "geteuid", lambda: own)
    peer = struct.pack("3i", 7, other, other)
    monkeypatch.setattr(socket.socket, "getsockopt", lambda *_: peer, raising=False)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        if is_answered:
            connected(path, 5.0).close()
        else:
            with pytest.raises(OtherUserError):
                connected(path, 5.0)


def test_a_client_waits_while_others_wait_to_be_accepted(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        stack.enter_context(connected(path, 5.0))
        with pytest.raises(TimeoutError):
            connected(path, 0.05)
        accepting = threading.Timer(0.05, lambda: stack.enter_context(listener.accept()[0]))
        accepting.start()
        connected(path, 30.0).close()
        accepting.join()
