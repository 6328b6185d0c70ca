"""The measurement begins once the program's socket accepts connections, and precedes other programs."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from bench.bench_questions import listens, precedence


def test_a_socket_that_is_bound_does_not_listen_yet(tmp_path: Path) -> None:
    path = tmp_path / "api"
    assert not listens(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert not listens(path)
        server.listen()
        assert listens(path)


def test_precedence_over_other_programs_ends_with_its_block() -> None:
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        with precedence():
            pass
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
    finally:
        os.sched_setscheduler(0, *before)
