"""The loop of a BFD process: sockets, clock and engine in one thread.

Sockets are read before deadlines are judged, by a time before the reading: a process that stood still
takes what has arrived meanwhile. One turn reads a bounded number of packets, so that no flood keeps
packets from being sent.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import structs

from speaker.bfd.echo_socket import EchoSocket, Neighbor, neighbors
from speaker.bfd.engine import SINGLE_HOP_TTL, Engine, StateChange
from speaker.bfd.recent import RecentMaximum
from speaker.bfd.session_values import SessionKey, Settings, State
from speaker.bfd.state_file import StateFile
from speaker.bfd.transport import (
    Receiver,
    device_number,
    first_source_port,
    is_link_local,
    sending_socket,
    source_port,
)

STANDSTILL: Final = 100_000
"""Microseconds between two turns after which what waits may be more than a turn reads."""
MAX_PACKETS_AFTER_STANDSTILL: Final = 4096
"""Of one socket, whose buffer has room for fewer: some 50 ms. A deadline is judged after them."""
MAX_PACKETS_PER_TURN: Final = 256
"""Of one socket: some 3 ms."""
TURNS_PER_INTERVAL: Final = 25
"""Of the shortest interval, at the most: packets are sent and taken together, 4 % of it late."""
LONGEST_REST: Final = 5_000
"""Between two turns, in microseconds."""
RETRY_INTERVAL: Final = 1_000_000
"""Between attempts to open a socket that failed, in microseconds."""


def monotonic_microseconds() -> int:
    """Return the time that the engine uses: of a clock that no step changes."""
    return time.monotonic_ns() // 1000


class Shell:
    """The sessions of one network namespace on their sockets."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], int] = monotonic_microseconds,
        sleep: Callable[[float], None] = time.sleep,
        on_change: Callable[[StateChange], None] = lambda _: None,
        state_file: StateFile | None = None,
        echo_sockets: Sequence[EchoSocket] = (),
    ) -> None:
        """``on_change`` is called within `turn`, once for each change of state.

        ``echo_sockets``, of each family, are closed with the others; without them no echo packets are
        sent.

        Sessions of the process before, in ``state_file``, continue once they are configured.
        """
        self.engine = engine
        self._state_file = state_file
        self._former = {} if state_file is None else {s.key: s for s in state_file.read()}
        self.errors: dict[SessionKey | tuple[int, str, bool], OSError] = {}
        """Sockets that could not be opened or sent from, by session or (family, device, multihop)."""
        self._lateness = RecentMaximum()
        self._clock = clock
        self._sleep = sleep
        self._rest = 0
        """The least time between two turns, in microseconds."""
        self._turned_at = 0
        self._signs = False
        """Whether a session has authentication, or a removed one had it."""
        self._on_change = on_change
        self._poll = select.epoll()
        self._receivers: dict[tuple[int, str, bool], Receiver] = {}
        self._dropped = 0
        """Packets that the kernel dropped on sockets that are closed."""
        self._by_descriptor: dict[int, Receiver] = {}
        self._sending: dict[SessionKey, socket.socket] = {}
        self._source_ports: dict[SessionKey, int] = {}
        """Also while a session has no socket: its next one has the same port (RFC 5881 section 4)."""
        self._devices: dict[SessionKey | tuple[int, str, bool], int] = {}
        """The number of the device that a socket is bound to, 0 for none; keys as of `errors`."""
        self._wanted: dict[SessionKey, Settings] = {}
        self._removed: set[SessionKey] = set()
        """Removed sessions, which are AdminDown until the neighbor has noticed."""
        self._retry_at: int | None = None
        self._echo_sockets = {each.family: each for each in echo_sockets}
        self._echo_readers: dict[int, EchoSocket] = {}
        """Listening sockets, by descriptor."""
        self._echo_neighbors: dict[SessionKey, Neighbor] = {}
        self.echo_error: OSError | None = None
        """Why the neighbors of echo packets are not known, if they are not."""

    def configure(self, sessions: Mapping[SessionKey, Settings]) -> None:
        """Have these sessions and no others."""
        now = self._clock()
        for key in self._wanted.keys() - sessions.keys():
            self.engine.remove_session(key, now)
            self._removed.add(key)
        self._removed -= sessions.keys()
        self._wanted = dict(sessions)
        former = self._former.keys() & sessions.keys()
        continued = [(self._former.pop(key), sessions[key]) for key in former]
        self._source_ports |= {s.key: s.source_port for s, _ in continued if s.source_port}
        self.engine.restore(continued, now)
        self._forget_former()
        for key, settings in sessions.items():
            self.engine.set_session(key, settings, now)
        shortest = min((_shortest(s) for s in sessions.values()), default=0)
        self._rest = min(shortest // TURNS_PER_INTERVAL, LONGEST_REST)
        self._signs |= any(settings.key is not None for settings in sessions.values())
        self._open(now)

    def _forget_former(self) -> None:
        """Forget the sessions of the process before that are not configured any more."""
        if self._state_file is not None:
            for key in self._former:
                self._state_file.remove(key)
        self._former.clear()

    def _open(self, now: int) -> None:
        """Open the sockets that sessions need, and close the unused sockets."""
        sources: dict[tuple[int, str, bool], set[str]] = {}
        least_ttl: dict[tuple[int, str, bool], int] = {}
        for key, settings in self._wanted.items():
            place = _place(key)
            sources.setdefault(place, set()).add(key.peer)
            ttl = settings.minimum_ttl if key.multihop else SINGLE_HOP_TTL
            least_ttl[place] = min(ttl, least_ttl.get(place, ttl))
        for place in self._receivers.keys() - sources.keys():
            self._close_receiver(place)
        self.errors = {k: e for k, e in self.errors.items() if k in self._wanted or k in sources}
        self._devices = {
            k: n for k, n in self._devices.items() if k in self._sending or k in self._receivers
        }
        for place, addresses in sources.items():
            self._open_receiver(place, addresses, least_ttl[place])
        taken = set(self._source_ports.values())
        for key in [key for key in self._wanted if key not in self._sending]:
            if _place(key) not in self._receivers:
                # Another process has the port: the neighbor would take these packets for that one's,
                # and end its session.
                continue
            try:
                self._devices[key] = device_number(key.device) if key.device else 0
                self._sending[key] = self._sending_socket(key, taken)
                self.errors.pop(key, None)
            except OSError as error:
                self.errors[key] = error
        failed = self.errors.keys() - self._sending.keys() - self._receivers.keys()
        self._retry_at = now + RETRY_INTERVAL if failed else None

    def _sending_socket(self, key: SessionKey, taken: set[int]) -> socket.socket:
        """Return a socket with the session's source port, which it keeps. Raises OSError.

        ``taken``: the source ports of all sessions.
        """
        kept = self._source_ports.get(key)
        discriminator = self.engine.sessions[key].local_discriminator
        first = first_source_port(discriminator) if kept is None else kept
        sock = sending_socket(key, first, taken - {kept})
        port = source_port(sock)
        if port != kept:
            self._source_ports[key] = port
            taken.discard(kept or 0)
            taken.add(port)
            self.engine.renewed.add(key)
        return sock

    def _open_receiver(
        self, place: tuple[int, str, bool], addresses: Iterable[str], least_ttl: int
    ) -> None:
        receiver = self._receivers.get(place)
        if receiver is None:
            family, device, multihop = place
            self._devices[place] = device_number(device) if device else 0
            beside = [
                other
                for other in self._receivers.values()
                if (other.family, other.multihop) == (family, multihop)
            ]
            try:
                receiver = Receiver(family, device, multihop=multihop, beside=beside)
            except OSError as error:
                self.errors[place] = error
                return
            self.errors.pop(place, None)
            self._receivers[place] = receiver
            self._by_descriptor[receiver.sock.fileno()] = receiver
            self._poll.register(receiver.sock, select.EPOLLIN)
        try:
            receiver.accept_from(frozenset(addresses), least_ttl)
        except OSError as error:
            self.errors[place] = error
        else:
            self.errors.pop(place, None)

    def _close_receiver(self, place: tuple[int, str, bool]) -> None:
        receiver = self._receivers.pop(place)
        del self._by_descriptor[receiver.sock.fileno()]
        self._poll.unregister(receiver.sock)
        self._dropped += receiver.dropped()
        receiver.close()

    def dropped(self) -> int:
        """Return how many packets the kernel has dropped: of strangers, from afar, or without room."""
        return self._dropped + sum(receiver.dropped() for receiver in self._receivers.values())

    def register(self, descriptor: int) -> None:
        """Let `turn` return the descriptor when it can be read: of a control socket."""
        self._poll.register(descriptor, select.EPOLLIN)

    def unregister(self, descriptor: int) -> None:
        """Undo `register`."""
        self._poll.unregister(descriptor)

    def now(self) -> int:
        """Return the time of the engine."""
        return self._clock()

    def lateness(self) -> int:
        """Return the latest that a deadline of the last minutes was met, in microseconds."""
        return self._lateness.at(self._clock())

    def error(self, key: SessionKey) -> OSError | None:
        """Return why a session cannot send or receive, if it cannot."""
        return self.errors.get(key) or self.errors.get(_place(key))

    def links_changed(self) -> None:
        """Open sockets again: an interface or VRF was made, deleted or renamed.

        A socket that is bound to a deleted device neither sends nor receives, and does not fail.
        """
        bound = {key.device for key in self._sending} | {place[1] for place in self._receivers}
        numbers = {device: device_number(device) for device in bound if device}
        for place, receiver in list(self._receivers.items()):
            receiver.forget_names()
            if self._devices[place] != numbers.get(place[1], 0):
                self._close_receiver(place)
        for key in list(self._sending):
            if self._devices[key] != numbers.get(key.device, 0):
                self._sending.pop(key).close()
        self._open(self._clock())
        self._find_echo_neighbors()

    def _find_echo_neighbors(self) -> None:
        """Look up where echo packets are sent: the addresses of the links."""
        now = self._clock()
        wanted: dict[int, list[SessionKey]] = {}
        for key, settings in self._wanted.items():
            if settings.echo_interval and not is_link_local(key.peer):
                wanted.setdefault(_place(key)[0], []).append(key)
        for key in self._echo_neighbors.keys() - {k for keys in wanted.values() for k in keys}:
            del self._echo_neighbors[key]
            self.engine.set_echo_possible(key, now, possible=False)
        self.echo_error = None
        for family, keys in wanted.items():
            sock = self._echo_sockets.get(family)
            if sock is None:
                continue
            try:
                self._listen(sock)
                on_links = neighbors(family, {key.peer for key in keys})
            except OSError as error:
                # Neighbors that are known stay so.
                self.echo_error = error
                continue
            for key in keys:
                interface = self.engine.interface_of(key)
                of_link = [n for n in on_links.get(key.peer, ()) if n.interface == interface]
                if of_link:
                    self._echo_neighbors[key] = of_link[0]
                # An address that is forgotten for a moment is still the neighbor's.
                possible = key in self._echo_neighbors
                self.engine.set_echo_possible(key, now, possible=possible)

    def _listen(self, sock: EchoSocket) -> None:
        if sock.sock.fileno() not in self._echo_readers:
            sock.listen()
            self._echo_readers[sock.sock.fileno()] = sock
            self._poll.register(sock.sock, select.EPOLLIN)

    def turn(self, most: float | None = None) -> tuple[int, ...]:
        """Wait for a packet or a deadline, ``most`` seconds at the most, and do what is due.

        Returns the registered descriptors that can be read.
        """
        # Many sessions: without a rest each packet would be a turn.
        rest = self._turned_at + self._rest - self._clock()
        if rest > 0:
            self._sleep(rest / 1_000_000)
        others, rests = [], True
        self._poll.poll(self._timeout(most))
        # Deadlines are judged by a time before the sockets are looked at, wherever this process is held
        # in between. A wait that a signal ends after its time returns nothing, whatever has arrived.
        now = self._clock()
        stood_still = now - self._turned_at >= STANDSTILL
        limit = MAX_PACKETS_AFTER_STANDSTILL if stood_still else MAX_PACKETS_PER_TURN
        for descriptor, _ in self._poll.poll(0):
            receiver = self._by_descriptor.get(descriptor)
            if receiver is not None:
                # More waits: a rest would let it overflow the socket.
                rests &= self._read(receiver, limit) < limit
            elif (echoes := self._echo_readers.get(descriptor)) is not None:
                for payload in echoes.read(MAX_PACKETS_PER_TURN):
                    self.engine.echo_received(payload, self._clock())
            else:
                others.append(descriptor)
        self._turned_at = now if rests else now - self._rest
        due = self.engine.next_deadline()
        if due is not None and 0 < due < now:
            self._lateness.note(now - due, now)
        self.engine.due(now)
        if self._retry_at is not None and now >= self._retry_at:
            self._open(now)
        self._flush()
        return tuple(others)

    def _timeout(self, most: float | None) -> float | None:
        """Return how long to wait, in seconds; None: until a packet."""
        times = [time for time in (self.engine.next_deadline(), self._retry_at) if time is not None]
        if not times:
            return most
        wait = max(0.0, (min(times) - self._clock()) / 1_000_000)
        return wait if most is None else min(wait, most)

    def _read(self, receiver: Receiver, most: int) -> int:
        """Take the packets that wait, and return how many were."""
        take, now, count = self.engine.receive, self._clock(), 0
        for octets, origin in receiver.read(most):
            take(octets, origin, now)
            count += 1
        return count

    def _flush(self) -> None:
        """Send packets, and report changes."""
        engine = self.engine
        for key, octets in engine.sent:
            sock = self._sending.get(key)
            if sock is not None:
                self._send(key, sock, octets)
        if self._state_file is not None:
            self._save(self._state_file)
        engine.sent.clear()
        for key, payload in engine.echoes:
            self._send_echo(key, payload)
        engine.echoes.clear()
        if engine.changes:
            changes, engine.changes = engine.changes, []
            for change in changes:
                self._on_change(change)
            if any(c.after is State.UP and self._echoes(c.key) for c in changes):
                self._find_echo_neighbors()
        if self._removed:
            for key in self._removed - engine.sessions.keys():
                self._removed.discard(key)
                self._source_ports.pop(key, None)
                if key in self._sending:
                    self._sending.pop(key).close()

    def _save(self, file: StateFile) -> None:
        """Write what the next process needs: sequence numbers, and sessions that have changed."""
        sessions = self.engine.sessions
        for key in self.engine.renewed:
            session = sessions.get(key)
            if session is None:
                file.remove(key)
            else:
                port = self._source_ports.get(key, 0)
                file.write(structs.replace(session.saved(), source_port=port))
        self.engine.renewed.clear()
        if self._signs:
            for key, _ in self.engine.sent:
                session = sessions.get(key)
                if session is not None and session.settings.key is not None:
                    file.write_sequence(key, session.transmit_sequence)

    def _send(self, key: SessionKey, sock: socket.socket, octets: bytes) -> None:
        try:
            sock.send(octets)
        except OSError as error:
            # The neighbor has no BFD yet (an ICMP error of an earlier packet): the next one is sent.
            if error.errno != errno.ECONNREFUSED:
                self.errors[key] = error
            if error.errno in {errno.ENODEV, errno.EINVAL, errno.EADDRNOTAVAIL}:
                # The interface or the address is gone: another socket once it is back.
                self._sending.pop(key).close()
                self._retry_at = self._clock() + RETRY_INTERVAL
        else:
            if self.errors:
                self.errors.pop(key, None)

    def _echoes(self, key: SessionKey) -> bool:
        """Return whether a session shall send echo packets."""
        settings = self._wanted.get(key)
        return settings is not None and settings.echo_interval > 0

    def _send_echo(self, key: SessionKey, payload: bytes) -> None:
        """Send an echo packet; if it cannot be sent, it is lost, as on the link."""
        sock, sending = self._echo_sockets.get(_place(key)[0]), self._sending.get(key)
        neighbor = self._echo_neighbors.get(key)
        if sock is not None and sending is not None and neighbor is not None:
            with contextlib.suppress(OSError):
                sock.send(neighbor, key.local or sending.getsockname()[0], payload)

    def close(self) -> None:
        """Close all sockets; neighbors notice after their detection time."""
        for place in list(self._receivers):
            self._close_receiver(place)
        for sock in self._sending.values():
            sock.close()
        self._sending.clear()
        for each in self._echo_sockets.values():
            each.close()
        self._poll.close()


def _shortest(settings: Settings) -> int:
    """Return the shortest interval of a session, in microseconds."""
    intervals = (settings.desired_min_tx, settings.required_min_rx, settings.echo_interval)
    return min(interval for interval in intervals if interval)


def _place(key: SessionKey) -> tuple[int, str, bool]:
    """Return family, device and hops of the socket that receives a session's packets."""
    family = socket.AF_INET6 if ":" in key.peer else socket.AF_INET
    return family, "" if is_link_local(key.peer) else key.device, key.multihop
