"""Whether a port that this process may not bind is in use, by the kernel's table."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from speaker.server import listening_ports, sockets
from speaker.server.listening_ports import is_listened_on
from tests.support.ports import free_port

HEADER = "  sl  local_address rem_address   st tx_queue\n"


@pytest.mark.parametrize(
    ("bound", "wanted"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "0.0.0.0"),
        ("0.0.0.0", "127.0.0.9"),
        ("::1", "::1"),
        ("::1", "::"),
        ("::", "::1"),
    ],
)
def test_an_address_is_listened_on_where_one_socket_includes_it(bound: str, wanted: str) -> None:
    # No socket of another process has it, at any address.
    port = free_port("::")
    with sockets.listening(bound, port) as sock:
        assert not is_listened_on(wanted, port)
        sock.listen()
        assert is_listened_on(wanted, port)


def test_another_address_family_and_port_are_free() -> None:
    port, other = free_port("::"), free_port("::")
    with sockets.listening("127.0.0.1", port) as sock:
        sock.listen()
        assert not is_listened_on("127.0.0.2", port)
        assert not is_listened_on("::", port)
        assert not is_listened_on("127.0.0.1", other)


def test_listening_sockets_are_first_and_no_connection_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    listening = "   0: 00000000:00B3 00000000:0000 0A 00000000:00000000\n"
    connected = "   1: 0100007F:00B3 0100007F:1F90 01 00000000:00000000\n"
    monkeypatch.setattr(listening_ports, "_TABLES", {4: table})
    table.write_text(HEADER + listening + connected)
    assert is_listened_on("192.0.2.1", 179)
    table.write_text(HEADER + connected + listening)
    assert not is_listened_on("192.0.2.1", 179)


@pytest.mark.parametrize("content", [None, "", HEADER, HEADER + "nonsense\n"])
def test_without_a_usable_table_the_port_is_free(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    monkeypatch.setattr(listening_ports, "_TABLES", {4: table})
    if content is not None:
        table.write_text(content)
    assert not is_listened_on("192.0.2.1", 179)


@pytest.mark.parametrize(("used", "number"), [(True, errno.EADDRINUSE), (False, errno.EACCES)])
def test_a_plain_user_is_refused_a_port_in_use_for_that_reason(
    used: bool, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(socket.socket):
        def bind(self, _: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket, "socket", Refused)
    monkeypatch.setattr(sockets, "is_listened_on", lambda *_: used)
    with pytest.raises(sockets.SocketError) as caught:
        sockets.listening("127.0.0.1", 179)
    assert caught.value.errno == number
    assert ("another process" in sockets.listen_fix(caught.value)) is used
