"""The measurement begins once the program's socket accepts connections."""

from __future__ import annotations

import socket
from pathlib import Path

from bench.bench_questions import listens


def test_a_socket_that_is_bound_does_not_listen_yet(tmp_path: Path) -> None:
    path = tmp_path / "api"
    assert not listens(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert not listens(path)
        server.listen()
        assert listens(path)
