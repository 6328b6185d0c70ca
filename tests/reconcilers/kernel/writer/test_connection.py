"""The writer's socket: permitted clients, and which of several agents is served."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcilers.kernel.writer.protocol_messages import Hello
from tests.reconcilers.kernel.writer.conftest import Ground
from tests.support.kernel_writer import WriterProcess, routes
from tests.support.netns import has_all_users

pytestmark = [pytest.mark.netns, pytest.mark.program]

CONNECT = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(sys.argv[1])
    print("served" if connection.recv(8) else "closed")
except PermissionError:
    print("refused")
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may write, as a volume of a Pod."""
    with tempfile.TemporaryDirectory(prefix="waggle-kernel-") as folder:
        volume = Path(folder) / "volume"
        volume.mkdir()
        for path in (Path(folder), volume):
            path.chmod(0o777)
        yield volume


def as_user(path: Path, user: int, group: int, *more: str) -> str:
    command = ["setpriv", "--reuid", str(user), "--regid", str(group), "--clear-groups", *more]
    done = subprocess.run(
        [*command, sys.executable, "-c", CONNECT, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_an_agent_of_the_group_is_served_and_others_are_not(ground: Ground, shared: Path) -> None:
    if not has_all_users():
        pytest.skip("a program cannot become another user here")
    path = shared / "kernel.sock"
    # As in a Pod: root with the agent's group.
    writer = WriterProcess(
        ground.side, path, within=("setpriv", "--regid", "65532", "--clear-groups")
    )
    try:
        writer.connect()
        assert as_user(path, 65532, 65532) == "served"
        assert as_user(path, 0, 0) == "served"
        assert as_user(path, 1000, 1000) == "refused"
    finally:
        writer.end()


def test_the_newest_agent_is_served(ground: Ground, writer: WriterProcess) -> None:
    writer.install((ground.a,), "10.1.0.0/16")
    former = writer._socket
    writer._socket = None
    assert len(writer.connect()) == 1
    assert former is not None
    assert former.recv(1 << 16) == b""
    former.close()
    writer.install((ground.a,), "10.2.0.0/16")
    assert len(routes(ground.side)) == 2


def test_a_second_writer_does_not_replace_the_socket_of_the_first(
    ground: Ground, writer: WriterProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    second = WriterProcess(ground.side, writer.path)
    assert second.process.wait(60) == 1
    error = f"waggle-kernel: another waggle-kernel listens on {writer.path}; stop it, or"
    assert capfd.readouterr().err.startswith(error)
    assert writer.connect() == []


def test_versions_that_do_not_overlap_end_the_connection(
    ground: Ground, writer: WriterProcess
) -> None:
    writer.send(Hello("agent of the future", (7, 9)))
    with pytest.raises(ConnectionError):
        writer.expect(Hello)
    assert writer.connect() == []


def test_nothing_comes_before_the_settings(ground: Ground, writer: WriterProcess) -> None:
    writer.kill()
    writer.start()
    writer.greet()
    with pytest.raises(ConnectionError):
        writer.install((ground.a,), "10.1.0.0/16")
    assert routes(ground.side) == {}
