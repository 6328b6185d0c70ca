"""The sockets of sessions: what one session cannot have leaves the others alone."""

from __future__ import annotations

import errno
import itertools
import os
import socket
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from speaker.bfd import shell as module
from speaker.bfd import transport
from speaker.bfd.echo_socket import EchoSocket, Neighbor
from speaker.bfd.engine import Engine, Origin
from speaker.bfd.packet import encode
from speaker.bfd.session_values import SessionKey, Settings, State
from speaker.bfd.shell import MAX_PACKETS_PER_TURN, Shell
from speaker.bfd.state_file import SLOT_OCTETS, StateFile
from tests.speaker.bfd.build import new_engine
from tests.speaker.bfd.test_packet import PACKET

GOOD = SessionKey("192.0.2.9", "", "red")
ORIGIN = Origin("192.0.2.9", "192.0.2.1", "red", multihop=False, ttl=255)


class Socket:
    """A socket that is bound to a device, or to none."""

    def __init__(self, device: str, port: int) -> None:
        self.device, self.port = device, port
        self.sent: list[bytes] = []
        self.closed = False
        self.error: int | None = None
        """What the kernel answers to each packet."""

    def getsockname(self) -> tuple[str, int]:
        return "192.0.2.1", self.port

    def send(self, octets: bytes) -> None:
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        self.sent.append(octets)

    def close(self) -> None:
        self.closed = True


class Receiver:
    """A receiving socket."""

    def __init__(
        self, family: int, device: str, *, multihop: bool, beside: Collection[Receiver] = ()
    ) -> None:
        self.family, self.device, self.multihop = family, device, multihop
        self.beside = [other.device for other in beside]
        reading, self._writing = socket.socketpair()
        self.sock = reading
        self.closed = False
        self.waiting = 0
        """Packets of a stranger."""
        self.packets: list[bytes] = []
        """Packets of the neighbor."""
        self.error: OSError | None = None

    def arrive(self, packets: int) -> None:
        self.waiting += packets
        self._writing.send(b"\0")

    def bring(self, octets: bytes) -> None:
        self.packets.append(octets)
        self._writing.send(b"\0")

    def read(self, most: int) -> Iterator[tuple[bytes, Origin]]:
        for _ in range(min(most, self.waiting)):
            self.waiting -= 1
            yield b"", ORIGIN
        while self.packets:
            yield self.packets.pop(0), ORIGIN
        if not self.waiting:
            self.sock.recv(1 << 16)

    def accept_from(self, addresses: frozenset[str], least_ttl: int) -> None:
        """Take any address, or fail."""
        self.accepted = addresses, least_ttl
        if self.error is not None:
            raise self.error

    def dropped(self) -> int:
        return 3

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
        self.taken = False
        """Whether another process has the port."""
        self.now = 1

        def sending(key: SessionKey, port: int, taken: Collection[int]) -> Socket:
            self._check(key.device)
            assert set(taken) >= {each.port for each in self.sockets if not each.closed}
            while port in taken:
                port += 1
            self.sockets.append(Socket(key.device, port))
            return self.sockets[-1]

        def receiver(
            family: int, device: str, *, multihop: bool, beside: Collection[Receiver]
        ) -> Receiver:
            self._check(device)
            if self.taken:
                raise OSError(errno.EADDRINUSE, "Address already in use")
            self.receivers.append(Receiver(family, device, multihop=multihop, beside=beside))
            return self.receivers[-1]

        monkeypatch.setattr(module, "sending_socket", sending)
        monkeypatch.setattr(module, "Receiver", receiver)
        monkeypatch.setattr(module, "device_number", lambda name: self.numbers.get(name, 0))
        self.rests: list[float] = []
        """In seconds."""
        self.shell = Shell(
            new_engine(),
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
    first, second = node.sockets
    assert first.port == second.port


def test_the_next_process_has_the_source_port_of_the_session(node: Node, tmp_path: Path) -> None:
    node.shell.configure({GOOD: Settings()})
    node.turn()
    node.shell.close()
    file = StateFile(tmp_path / "sessions")
    following = Shell(new_engine(2), clock=lambda: node.now, state_file=file)
    following.configure({SessionKey("192.0.2.8", "", "red"): Settings(), GOOD: Settings()})
    first, other, second = node.sockets
    assert first.port == second.port != other.port
    following.close()
    file.close()


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> int:
    """Give all sessions discriminators from which the same source port follows; return the port."""
    numbers = itertools.count(7, len(transport.SOURCE_PORTS))
    monkeypatch.setattr(Engine, "_free_discriminator", lambda _: next(numbers))
    return transport.first_source_port(7)


def test_a_session_keeps_its_source_port_when_an_earlier_port_is_free_again(
    node: Node, alike: int, tmp_path: Path
) -> None:
    """In the next socket, and in the next process (RFC 5881 section 4)."""
    other = SessionKey("192.0.2.8", "", "red")
    node.shell.configure({other: Settings(), GOOD: Settings()})
    assert [sock.port for sock in node.sockets] == [alike, alike + 1]
    node.shell.configure({GOOD: Settings()})
    node.turn()
    assert node.sockets[0].closed
    node.numbers["red"] = 8
    node.shell.links_changed()
    assert node.sockets[2].port == alike + 1
    node.turn()
    node.shell.close()
    file = StateFile(tmp_path / "sessions")
    following = Shell(new_engine(2), clock=lambda: node.now, state_file=file)
    following.configure({other: Settings(), GOOD: Settings()})
    assert {sock.port for sock in node.sockets[3:]} == {alike, alike + 1}
    assert following._sending[GOOD].getsockname()[1] == alike + 1
    following.close()
    file.close()


def test_the_source_port_of_a_session_without_its_device_is_taken(node: Node, alike: int) -> None:
    node.shell.configure({GOOD: Settings()})
    del node.numbers["red"]
    node.shell.links_changed()
    assert node.sockets[0].closed
    node.numbers["blue"] = 8
    new = SessionKey("192.0.2.8", "", "blue")
    node.shell.configure({new: Settings(), GOOD: Settings()})
    node.numbers["red"] = 9
    node.shell.links_changed()
    assert [sock.port for sock in node.sockets] == [alike, alike + 1, alike]
    node.shell.configure({new: Settings()})
    node.turn()
    node.shell.configure({new: Settings(), SessionKey("192.0.2.7", "", "blue"): Settings()})
    assert node.sockets[3].port == alike, "of a removed session it is free"


def test_a_receiver_shares_its_port_with_the_same_family_and_hops(node: Node) -> None:
    keys = [
        GOOD,
        SessionKey("192.0.2.8", ""),
        SessionKey("2001:db8::8", ""),
        SessionKey("192.0.2.7", "", multihop=True),
        SessionKey("192.0.2.7", "", "red", multihop=True),
    ]
    for count in range(1, len(keys) + 1):
        node.shell.configure(dict.fromkeys(keys[:count], Settings()))
    assert [receiver.beside for receiver in node.receivers] == [[], ["red"], [], [], [""]]


def test_a_filter_that_cannot_be_set_ends_no_session(node: Node) -> None:
    node.shell.configure({GOOD: Settings()})
    (receiver,) = node.receivers
    receiver.error = OSError(errno.ENOBUFS, "No buffer space available")
    node.shell.configure({GOOD: Settings(), SessionKey("192.0.2.8", "", "red"): Settings()})
    assert node.shell.error(GOOD) is receiver.error
    assert not receiver.closed
    receiver.error = None
    node.shell.configure({GOOD: Settings()})
    assert node.shell.error(GOOD) is None


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


def test_nothing_is_sent_while_another_process_has_the_port(node: Node) -> None:
    """Its neighbor would take a packet for one of the session with that process, and end it."""
    node.taken = True
    node.shell.configure({GOOD: Settings()})
    for _ in range(3):
        node.turn()
    error = node.shell.error(GOOD)
    assert error is not None
    assert error.errno == errno.EADDRINUSE
    assert node.sockets == []
    node.taken = False
    node.turn()
    node.turn()
    assert node.shell.error(GOOD) is None
    assert node.sockets[0].sent


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


def test_what_still_waits_is_read_without_a_rest(node: Node) -> None:
    """The packets of a flood would fill the socket meanwhile, and packets of neighbors be lost."""
    node.shell.configure({GOOD: Settings(50_000, 50_000)})
    node.turn()
    (receiver,) = node.receivers
    receiver.arrive(2 * MAX_PACKETS_PER_TURN + 1)
    for _ in range(3):
        node.turn(0)
    assert receiver.waiting == 0
    assert node.rests == [0.002], "before the first packets"
    node.turn(0)
    assert node.rests == [0.002, 0.002]


def test_all_that_waits_after_a_standstill_is_read_before_a_deadline_is_judged(node: Node) -> None:
    """A thousand sessions have more than one turn reads: the last of them would be lost."""
    node.shell.configure({GOOD: Settings(50_000, 50_000)})
    node.turn()
    (receiver,) = node.receivers
    receiver.arrive(10 * MAX_PACKETS_PER_TURN)
    node.turn(600_000)
    assert receiver.waiting == 0
    receiver.arrive(10 * MAX_PACKETS_PER_TURN)
    node.turn(2_000)
    assert receiver.waiting == 9 * MAX_PACKETS_PER_TURN, "a flood keeps no packet from being sent"


class Held:
    """The poll object and the clock of a process that is held for 0.6 s at one of its steps.

    The neighbor's packets arrive all the while.
    """

    def __init__(self, node: Node, octets: bytes, step: int, poll: Any) -> None:  # noqa: ANN401
        self.node, self.octets, self.step, self.real = node, octets, step, poll
        self.done: list[str] = []

    def _hold(self, step: str) -> bool:
        self.done.append(step)
        if len(self.done) - 1 != self.step:
            return False
        self.node.now += 600_000
        self.node.receivers[0].bring(self.octets)
        return True

    def clock(self) -> int:
        self._hold("clock")
        return self.node.now

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = self.real.poll(0)
        if self._hold("wait" if timeout else "look"):
            return []  # the time is over, as a signal ends the wait (PEP 475)
        return found

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.real, name)


def test_a_process_that_is_held_at_any_step_loses_no_session(node: Node) -> None:
    """What has arrived meanwhile is read before a deadline is judged, whatever the poll returned."""
    node.shell.configure({GOOD: Settings(50_000, 50_000)})
    session = node.shell.engine.sessions[GOOD]
    theirs = PACKET._replace(desired_min_tx=50_000, required_min_rx=1_000_000)
    for state, yours in ((State.DOWN, 0), (State.UP, session.local_discriminator)):
        packet = encode(theirs._replace(state=state, your_discriminator=yours))
        node.shell.engine.receive(packet, ORIGIN, node.now)
    real, steps = node.shell._poll, 1
    held: set[str] = set()
    while len(held) < steps:
        node.shell.engine.receive(packet, ORIGIN, node.now)
        node.shell.turn(0)
        assert session.state is State.UP
        step = Held(node, packet, len(held), real)
        node.shell._poll, node.shell._clock = cast("Any", step), step.clock
        for _ in range(2):
            node.shell.turn(0.001)
            assert session.state is State.UP, step.done[len(held)]
        node.shell._poll, node.shell._clock = real, lambda: node.now
        steps = len(step.done)
        held.add(f"{len(held)} {step.done[len(held)]}")
    assert {"look", "wait", "clock"} == {each.split()[1] for each in held}
    node.shell.turn(0)
    node.now += 150_001
    node.shell.turn(0)
    assert session.state is State.DOWN, "without a packet it is lost"


@pytest.mark.parametrize(
    "number", [errno.EAGAIN, errno.ENOBUFS, errno.EPERM, errno.ENETUNREACH, errno.EMSGSIZE]
)
def test_a_packet_that_cannot_be_sent_ends_nothing(node: Node, number: int) -> None:
    """A full socket, a full queue of the device, a firewall: the next packet is sent as ever."""
    node.shell.configure({GOOD: Settings(), SessionKey("192.0.2.8", "", "red"): Settings()})
    bad, good = node.sockets
    bad.error = number
    for _ in range(5):
        node.turn()
    failed = [key for key in node.shell.engine.sessions if node.shell.error(key) is not None]
    assert len(failed) == 1
    error = node.shell.error(failed[0])
    assert error is not None
    assert error.errno == number
    assert not bad.sent
    assert len(good.sent) >= 5
    bad.error = None
    node.turn()
    assert bad.sent
    assert node.shell.error(failed[0]) is None
    assert len(node.sockets) == 2, "no socket was made anew"


def test_neighbors_of_echo_packets_that_cannot_be_looked_up_end_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of too many descriptors, for one: the process goes on, and looks again."""

    def neighbors(_: int, __: object) -> dict[str, tuple[Neighbor, ...]]:
        raise OSError(errno.EMFILE, "Too many open files")

    reading, writing = socket.socketpair()
    with reading, writing:
        echoes = EchoSocket.__new__(EchoSocket)
        echoes.family, echoes.sock = socket.AF_INET, reading
        monkeypatch.setattr(EchoSocket, "listen", lambda _: None)
        monkeypatch.setattr(module, "neighbors", neighbors)
        shell = Shell(new_engine(), clock=lambda: node.now, echo_sockets=(echoes,))
        shell.configure({GOOD: Settings(echo_interval=50_000)})
        shell.links_changed()
        assert shell.echo_error is not None
        assert shell.echo_error.errno == errno.EMFILE
        monkeypatch.setattr(module, "neighbors", lambda _, __: {})
        shell.links_changed()
        assert shell.echo_error is None
        shell.close()


@pytest.mark.parametrize("device", ["sixteen-octets-x", "v" * 600, "a\0b", "\ud800"])
def test_a_name_that_no_device_can_have_is_no_other_device(device: str) -> None:
    """The kernel takes the first 15 octets of a longer one."""
    with pytest.raises(OSError, match="No such device"):
        transport.sending_socket(SessionKey("192.0.2.9", "", device), 1)
    with pytest.raises(OSError, match="No such device"):
        transport.Receiver(socket.AF_INET, device, multihop=False)
    assert transport.device_number(device) == 0


def test_the_lateness_is_by_how_much_a_deadline_was_missed(node: Node) -> None:
    node.shell.configure({GOOD: Settings()})
    node.turn(0)
    due = node.shell.engine.next_deadline()
    assert due is not None
    node.now = due + 7_000
    node.turn(0)
    assert node.shell.lateness() == 7_000


def test_a_wait_is_at_most_as_long_as_the_caller_has_time(node: Node) -> None:
    """The process of the sessions reports to its agent meanwhile, also without a session."""
    shell = node.shell
    assert (shell._timeout(0.25), shell._timeout(None)) == (0.25, None)
    shell.configure({GOOD: Settings()})
    node.turn(0)
    due = shell.engine.next_deadline()
    assert due is not None
    node.now = due - 100_000
    assert [shell._timeout(most) for most in (0.25, 0.05, None)] == [0.1, 0.05, 0.1]
