"""Processes that have the name of a protocol number's lock: a writer, and others."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from reconcilers.kernel.writer import protocol_lock
from reconcilers.kernel.writer.protocol_lock import MAX_UNANSWERED, ProtocolLock

PROTOCOL = 1000 + os.getpid()
"""Names are of the whole network namespace."""
NAME = f"\0waggle-kernel/{PROTOCOL}"


@pytest.fixture
def lock() -> Iterator[ProtocolLock]:
    lock = ProtocolLock()
    yield lock
    lock.release()


def test_a_writer_of_our_user_has_the_lock_until_it_ends(lock: ProtocolLock) -> None:
    other = ProtocolLock()
    assert other.take(PROTOCOL)
    for _ in range(3 * MAX_UNANSWERED):
        assert not lock.take(PROTOCOL)
        other.answer()
    other.release()
    assert lock.take(PROTOCOL)
    assert lock.take(PROTOCOL)
    assert not other.take(PROTOCOL)


def test_a_process_of_another_user_holds_nothing_up(
    lock: ProtocolLock, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(protocol_lock, "is_trusted", lambda _: False)
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(NAME)
        holder.listen()
        assert lock.take(PROTOCOL)
    assert f"no waggle-kernel has the socket @waggle-kernel/{PROTOCOL}" in capfd.readouterr().err
    assert lock.take(PROTOCOL)
    monkeypatch.undo()
    assert not ProtocolLock().take(PROTOCOL)


def test_a_socket_of_another_kind_is_no_writers(lock: ProtocolLock) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
        holder.bind(NAME)
        assert lock.take(PROTOCOL)


def test_a_process_that_accepts_no_connection_is_no_writer_after_a_while(
    lock: ProtocolLock,
) -> None:
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(NAME)
        answers = [lock.take(PROTOCOL) for _ in range(MAX_UNANSWERED)]
        assert answers == [*[False] * (MAX_UNANSWERED - 1), True]
