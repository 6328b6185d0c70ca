"""H51: the socket is its user's alone, and a dead agent does not block the next one."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cells.unix_socket import UnixSocketError, bind


def test_the_socket_is_private_from_the_first_moment(tmp_path: Path) -> None:
    path = tmp_path / "run" / "waggle" / "agent.sock"
    before = os.umask(0)
    try:
        bound = bind(path, "agent")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    bound.unlink()
    assert not path.exists()
    bound.sock.close()


def test_a_socket_left_by_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    dead = bind(path, "agent")
    dead.sock.close()
    os.close(dead.lock)
    alive = bind(path, "agent")
    alive.sock.listen()
    # The old owner's late clean-up must not take the new owner's name away.
    dead._replace(lock=os.dup(alive.lock)).unlink()
    assert path.exists()
    alive.sock.close()
    alive.unlink()


def test_a_socket_of_an_agent_that_does_not_listen_yet_is_not_taken_for_a_dead_ones(
    tmp_path: Path,
) -> None:
    path = tmp_path / "agent.sock"
    starting = bind(path, "agent")
    with pytest.raises(
        UnixSocketError, match=r"another agent listens on .*agent\.sock; stop it, or"
    ):
        bind(path, "agent")
    starting.sock.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    starting.sock.close()
    starting.unlink()
    again = bind(path, "agent")
    again.sock.close()
    again.unlink()


def test_the_kernel_unlocks_the_path_of_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    source = f"""
import pathlib, sys, time
from cells.unix_socket import bind
bound = bind(pathlib.Path({str(path)!r}), "agent")
print("bound", flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"bound\n"
        with pytest.raises(UnixSocketError, match="another agent listens"):
            bind(path, "agent")
        process.kill()
        process.wait()
    bound = bind(path, "agent")
    bound.sock.close()
    bound.unlink()


def test_a_socket_of_a_living_agent_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    alive = bind(path, "agent")
    alive.sock.listen()
    with pytest.raises(
        UnixSocketError, match=r"another agent listens on .*agent\.sock; stop it, or"
    ):
        bind(path, "agent")
    os.close(alive.lock)
    with pytest.raises(
        UnixSocketError, match=r"another agent listens on .*agent\.sock; stop it, or"
    ):
        bind(path, "agent")  # of a release without the lock
    assert path.exists()
    alive.sock.close()


def test_h51_only_a_socket_is_ever_removed(tmp_path: Path) -> None:
    file = tmp_path / "precious"
    file.write_text("data")
    with pytest.raises(UnixSocketError, match="exists and is not a socket"):
        bind(file, "agent")
    link = tmp_path / "agent.sock"
    link.symlink_to(file)
    with pytest.raises(UnixSocketError, match="exists and is not a socket"):
        bind(link, "agent")
    dangling = tmp_path / "dangling.sock"
    dangling.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnixSocketError, match="exists and is not a socket"):
        bind(dangling, "agent")
    assert file.read_text() == "data"


def test_a_path_that_cannot_be_bound_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnixSocketError, match="is longer than 107 bytes"):
        bind(tmp_path / ("x" * 200), "agent")
    (tmp_path / "file").write_text("")
    with pytest.raises(UnixSocketError, match=r"cannot listen on .*file"):
        bind(tmp_path / "file" / "agent.sock", "agent")


def test_a_connection_reaches_the_listener(tmp_path: Path) -> None:
    bound = bind(tmp_path / "agent.sock", "agent")
    bound.sock.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(bound.path))
    bound.sock.close()


def test_a_directory_in_tmp_that_others_may_write_to_is_refused() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="waggle-test-") as name:
        directory = Path(name)
        directory.chmod(0o777)
        with pytest.raises(UnixSocketError, match="is not a directory of this user alone"):
            bind(directory / "agent.sock", "agent")
        directory.chmod(0o700)
        bound = bind(directory / "agent.sock", "agent")
        bound.sock.close()
        bound.unlink()
