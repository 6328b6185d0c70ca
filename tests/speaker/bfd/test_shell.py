"""The sockets of sessions: what one session cannot have leaves the others alone."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from speaker.bfd import shell as module
from speaker.bfd import transport
from speaker.bfd.shell import Shell
from speaker.bfd.state_file import SLOT_OCTETS, StateFile
from speaker.bfd.values import SessionKey, Settings
from tests.speaker.bfd.build import new_engine

GOOD = SessionKey("192.0.2.9", "", "red")


class Socket:
    """A socket that is bound to a device, or to none."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.sent: list[bytes] = []
        self.closed = False

    def send(self, octets: bytes) -> None:
        self.sent.append(octets)

    def close(self) -> None:
        self.closed = True


class Receiver:
    """A receiving socket, which nothing arrives at."""

    def __init__(self, family: int, device: str, *, multihop: bool) -> None:
        del family, multihop
        self.device = device
        reading, self._writing = socket.socketpair()
        self.sock = reading
        self.closed = False

    def accept_from(self, addresses: frozenset[str]) -> None:
        """Take any address."""

    def forget_names(self) -> None:
        """There are none."""

    def close(self) -> None:
        self.sock.close()
        self._writing.close()
        self.closed = True


class Node:
    """A shell on devices that the test makes and deletes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, file: StateFile) -> None:
        self.numbers = {"red": 7}
        self.sockets: list[Socket] = []
        self.receivers: list[Receiver] = []
        self.now = 1

        def sending(key: SessionKey, _: object) -> Socket:
            self._check(key.device)
            self.sockets.append(Socket(key.device))
            return self.sockets[-1]

        def receiver(family: int, device: str, *, multihop: bool) -> Receiver:
            self._check(device)
            self.receivers.append(Receiver(family, device, multihop=multihop))
            return self.receivers[-1]

        monkeypatch.setattr(module, "sending_socket", sending)
        monkeypatch.setattr(module, "Receiver", receiver)
        monkeypatch.setattr(module, "device_number", lambda name: self.numbers.get(name, 0))
        random = Random(1).random  # noqa: S311  no secret is made of it
        self.rests: list[float] = []
        """In seconds."""
        self.shell = Shell(
            new_engine(),
            random,
            clock=lambda: self.now,
            sleep=self.rests.append,
            state_file=file,
        )

    def _check(self, device: str) -> None:
        if device and device not in self.numbers:
            raise OSError(errno.ENODEV, "No such device")

    def turn(self, microseconds: int = 2_000_000) -> None:
        self.now += microseconds
        self.shell.turn(0)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Node]:
    file = StateFile(tmp_path / "sessions")
    found = Node(monkeypatch, file)
    yield found
    found.shell.close()
    file.close()


def test_a_device_that_was_made_anew_has_new_sockets(node: Node) -> None:
    """A socket stays bound to the deleted device of its name: it would never receive again."""
    node.shell.configure({GOOD: Settings()})
    node.shell.links_changed()
    assert (len(node.sockets), len(node.receivers)) == (1, 1)
    node.numbers["red"] = 8
    node.shell.links_changed()
    assert node.sockets[0].closed
    assert node.receivers[0].closed
    node.turn()
    assert node.sockets[1].sent


def test_a_session_waits_for_its_device(node: Node) -> None:
    node.shell.configure({GOOD: Settings()})
    del node.numbers["red"]
    node.shell.links_changed()
    error = node.shell.error(GOOD)
    assert error is not None
    assert error.errno == errno.ENODEV
    node.numbers["red"] = 9
    node.turn()
    assert node.shell.error(GOOD) is None
    assert (len(node.sockets), len(node.receivers)) == (2, 2)


def test_a_device_name_of_any_length_harms_no_other_session(node: Node) -> None:
    bad = SessionKey("192.0.2.8", "", "v" * SLOT_OCTETS)
    node.shell.configure({bad: Settings(), GOOD: Settings()})
    node.turn()
    assert node.shell.error(bad) is not None
    assert node.sockets[0].sent


def test_packets_that_are_due_within_a_rest_are_sent_in_one_turn(node: Node) -> None:
    """A turn for each packet would be most of the processor time of a hundred sessions."""
    keys = [SessionKey(f"192.0.2.{number}", "", "red") for number in range(1, 101)]
    node.shell.configure(dict.fromkeys(keys, Settings(50_000, 50_000)))
    node.turn()
    node.now += 1_000
    node.shell.turn(0)
    assert node.rests == [0.001], "4 % of the interval, less what has passed"
    node.shell.configure({key: Settings() for key in keys})
    node.shell.turn(0)
    assert node.rests[1:] == [0.005], "at most"


@pytest.mark.parametrize("device", ["sixteen-octets-x", "v" * 600, "a\0b", "\ud800"])
def test_a_name_that_no_device_can_have_is_no_other_device(device: str) -> None:
    """The kernel takes the first 15 octets of a longer one."""
    with pytest.raises(OSError, match="No such device"):
        transport.sending_socket(SessionKey("192.0.2.9", "", device), lambda: 0.5)
    with pytest.raises(OSError, match="No such device"):
        transport.Receiver(socket.AF_INET, device, multihop=False)
    assert transport.device_number(device) == 0
