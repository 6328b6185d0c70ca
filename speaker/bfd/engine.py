"""All BFD sessions of a process: demultiplexing (RFC 5880 section 6.3), deadlines, counters.

Pure: `receive` and `due` append to `sent`, `echoes` and `changes`, which the caller takes. A caller
reads what waits in its sockets before it calls `due`, so that a pause of the process alone ends no
session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from speaker.bfd.echo import EchoFunction, discriminator_of
from speaker.bfd.packet import Packet, decode
from speaker.bfd.schedule import NEVER, Schedule
from speaker.bfd.session import Session
from speaker.bfd.session_values import Diagnostic, Discard, Saved, SessionKey, Settings, State

SINGLE_HOP_TTL: Final = 255
"""Of packets of a single hop, sent and received (RFC 5881 section 5)."""
_DISCRIMINATORS: Final = 1 << 32


class Origin(NamedTuple):
    """The origin of a datagram, by the socket that received it."""

    peer: str
    """The source address."""
    local: str
    """The destination address."""
    device: str
    """The interface of a single hop, or the VRF device; empty for none."""
    multihop: bool
    """True of port 4784, False of port 3784."""
    ttl: int
    interface: int = 0
    """The number of the interface."""


class Sent(NamedTuple):
    """A control packet to send."""

    key: SessionKey
    octets: bytes


class Echo(NamedTuple):
    """An echo packet to send, which the neighbor returns (RFC 5880 section 5)."""

    key: SessionKey
    payload: bytes


class StateChange(NamedTuple):
    """A session has changed its state."""

    key: SessionKey
    before: State
    after: State
    diagnostic: Diagnostic
    remote_state: State
    remote_diagnostic: int
    remote_independent: bool
    """The neighbor's C bit: its BFD continues while its control plane restarts."""
    time: int


class Engine:
    """The sessions by their key; time and randomness come from outside."""

    def __init__(
        self, random: Callable[[], float], jitter: Callable[[], float] | None = None
    ) -> None:
        """``random`` returns unpredictable numbers from 0 up to 1; ``jitter``: see `Session`."""
        self.sessions: dict[SessionKey, Session] = {}
        self.sent: list[Sent] = []
        self.echoes: list[Echo] = []
        self.changes: list[StateChange] = []
        self.renewed: set[SessionKey] = set()
        """Sessions of which `Session.saved` has changed, but for sequence numbers of what was sent."""
        self.discarded: Counter[Discard] = Counter()
        self._random = random
        self._jitter = jitter
        self._by_discriminator: dict[bytes, Session] = {}
        self._origins: dict[int, Origin] = {}
        """By local discriminator: where the last accepted packet came from."""
        self._schedule: Schedule[Session] = Schedule()
        """A deadline is no later than the next work on its session."""
        self._leaving: dict[int, int] = {}
        """By local discriminator: when a removed session is forgotten."""
        self._echo: dict[int, EchoFunction] = {}

    # Settings

    def set_session(self, key: SessionKey, settings: Settings, now: int) -> None:
        """Create a session, or change its settings without a change of state."""
        session = self.sessions.get(key)
        if session is None:
            session = self._created(key, settings, now, self._free_discriminator())
        elif self._leaving.pop(session.local_discriminator, None) is not None or (
            settings != session.settings
        ):
            self._act(session, lambda: session.configure(settings, now), now)
        self._queue(session)

    def remove_session(self, key: SessionKey, now: int) -> None:
        """End a session: AdminDown for as long as the neighbor needs to notice, then forgotten.

        For the detection times of both ends, RFC 5880 sections 6.8.1 and 6.8.16: whatever its state
        is, if a neighbor is there. Returns at once; no effect without the session.
        """
        session = self.sessions.get(key)
        if session is None or session.local_discriminator in self._leaving:
            return
        lingers = session.neighbor.discriminator != 0
        interval, received = session.transmit_interval, session.last_received
        kept = 0 if received is None else received + session.detection_time - now
        settings = msgspec.structs.replace(session.settings, admin_down=True)
        self._act(session, lambda: session.configure(settings, now), now)
        if lingers:
            wait = settings.detect_multiplier * max(interval, session.transmit_interval)
            self._leaving[session.local_discriminator] = now + max(wait, kept)
            self._queue(session)
        else:
            self._forget(session)

    def saved(self) -> tuple[Saved, ...]:
        """Return what another process has to have to continue all sessions."""
        return tuple(session.saved() for session in self._present())

    def restore(self, sessions: Iterable[tuple[Saved, Settings]], now: int) -> None:
        """Continue the sessions of another process. A session with a used discriminator begins anew."""
        for saved, settings in sessions:
            number = saved.local_discriminator
            if saved.key in self.sessions:
                continue
            if not number or number.to_bytes(4) in self._by_discriminator:
                self.set_session(saved.key, settings, now)
                continue
            session = self._created(saved.key, settings, now, number)
            session.restore(saved, now)
            self._queue(session)

    def _created(
        self, key: SessionKey, settings: Settings, now: int, discriminator: int
    ) -> Session:
        session = Session(key, settings, discriminator, now, self._random, self._jitter)
        self.sessions[key] = session
        self.renewed.add(key)
        self._by_discriminator[discriminator.to_bytes(4)] = session
        return session

    def _free_discriminator(self) -> int:
        """Return a random number that is not zero and that no session has (6.8.1)."""
        while True:
            number = int(self._random() * _DISCRIMINATORS)
            if number and number.to_bytes(4) not in self._by_discriminator:
                return number

    def _present(self) -> Iterator[Session]:
        return (s for s in self.sessions.values() if s.local_discriminator not in self._leaving)

    def _forget(self, session: Session) -> None:
        number = session.local_discriminator
        self.renewed.add(session.key)
        del self.sessions[session.key]
        del self._by_discriminator[number.to_bytes(4)]
        self._schedule.stop(session)
        for table in (self._origins, self._leaving, self._echo):
            table.pop(number, None)

    # Reception

    def receive(self, octets: bytes, origin: Origin, now: int) -> None:
        """Take the payload of a datagram."""
        # Most packets equal their predecessors: no decoding.
        session = self._by_discriminator.get(octets[8:12])
        if (
            session is not None
            and self._origins.get(session.local_discriminator) == origin
            and session.receive_unchanged(octets, now)
        ):
            return
        discarded = self._receive(octets, origin, now)
        if discarded is not None:
            self.discarded[discarded] += 1

    def _receive(self, octets: bytes, origin: Origin, now: int) -> Discard | None:
        """Take a packet that is not the last one again; returns why it is discarded."""
        if not origin.multihop and origin.ttl != SINGLE_HOP_TTL:
            return Discard.TTL
        packet = decode(octets)
        if isinstance(packet, Discard):
            return packet
        session = self._session_of(packet, origin)
        if session is None:
            return Discard.YOUR_DISCRIMINATOR if packet.your_discriminator else Discard.NO_SESSION
        # RFC 5883: several hops need a limit of their own.
        if origin.ttl < session.settings.minimum_ttl:
            return Discard.TTL
        discarded: Discard | None = None

        def take() -> bytes | None:
            nonlocal discarded
            answer = session.receive(packet, now)
            if isinstance(answer, Discard):
                discarded = answer
                return None
            return answer

        self._act(session, take, now)
        if discarded is None:
            self._origins[session.local_discriminator] = origin
            self._queue(session)
        return discarded

    def _session_of(self, packet: Packet, origin: Origin) -> Session | None:
        """Demultiplex: by our discriminator; the first packets by addresses and device (6.3)."""
        if packet.your_discriminator:
            session = self._by_discriminator.get(packet.your_discriminator.to_bytes(4))
            return session if session is not None and _fits(session.key, origin) else None
        for local in (origin.local, ""):
            for device in (origin.device, ""):
                key = SessionKey(origin.peer, local, device, origin.multihop)
                if (session := self.sessions.get(key)) is not None:
                    return session
        return None

    def echo_received(self, payload: bytes, now: int) -> None:
        """Take an echo packet that the neighbor has returned."""
        session = self._by_discriminator.get(discriminator_of(payload))
        function = None if session is None else self._echo.get(session.local_discriminator)
        if session is None or function is None:
            return
        interval, multiplier = session.echo_transmit_interval, session.settings.detect_multiplier
        if function.returned(payload, now, interval, multiplier):
            session.echoes_received += 1
            session.echo_is_proven = True
            self._queue(session)

    def set_echo_possible(self, key: SessionKey, now: int, *, possible: bool) -> None:
        """Take whether a session's echo packets can be sent; of a session that does not exist, too."""
        session = self.sessions.get(key)
        if session is not None and session.echo_possible != possible:
            session.set_echo_possible(possible=possible)
            session.hasten(now)
            self._queue(session)

    def interface_of(self, key: SessionKey) -> int:
        """Return the interface that the neighbor's packets come from; 0 before the first one."""
        session = self.sessions.get(key)
        origin = None if session is None else self._origins.get(session.local_discriminator)
        return 0 if origin is None else origin.interface

    # Time

    def next_deadline(self) -> int | None:
        """Return when `due` has to be called next; None without a session."""
        return self._schedule.next_deadline()

    def due(self, now: int) -> None:
        """Do what is due: send packets, and declare neighbors lost."""
        while expired := self._schedule.expire(now):
            for session in expired:
                self._due(session, now)

    def _due(self, session: Session, now: int) -> None:
        number = session.local_discriminator
        if self._leaving and self._leaving.get(number, NEVER) <= now:
            self._forget(session)
            return
        if session.detection_deadline <= now:
            self._act(session, lambda: session.expire(now), now)
        if session.next_transmission <= now and (octets := session.transmit(now)) is not None:
            self.sent.append(Sent(session.key, octets))
        if session.echo_transmit_interval or number in self._echo:
            self._due_echo(session, now)
        self._queue(session)

    def _due_echo(self, session: Session, now: int) -> None:
        """Send an echo packet, or take the session down as none returns (6.8.5)."""
        number, interval = session.local_discriminator, session.echo_transmit_interval
        if not interval:
            self._echo.pop(number, None)
            return
        multiplier = session.settings.detect_multiplier
        function = self._echo.get(number)
        if function is None:
            secret = int(self._random() * (1 << 64))
            function = self._echo[number] = EchoFunction(number, secret)
        if function.failed(now, multiplier):
            del self._echo[number]
            self._act(session, lambda: session.echo_failed(now), now)
        elif function.next <= now:
            payload = function.send(now, interval, session.jittered(interval), multiplier)
            session.echoes_sent += 1
            self.echoes.append(Echo(session.key, payload))

    # Both

    def _act(self, session: Session, call: Callable[[], bytes | None], now: int) -> None:
        """Send what a call returns, and report the change of state that it makes."""
        before, revision = session.state, session.revision
        octets = call()
        if session.revision != revision:
            self.renewed.add(session.key)
        if octets is not None:
            self.sent.append(Sent(session.key, octets))
        if session.state is not before:
            self.changes.append(
                StateChange(
                    session.key,
                    before,
                    session.state,
                    session.diagnostic,
                    session.neighbor.state,
                    session.neighbor.diagnostic,
                    session.neighbor.independent,
                    now,
                )
            )

    def _queue(self, session: Session) -> None:
        """Schedule what is next for a session."""
        number = session.local_discriminator
        time = min(session.next_transmission, session.detection_deadline)
        if self._leaving:
            time = min(time, self._leaving.get(number, NEVER))
        if session.echo_transmit_interval or number in self._echo:
            function = self._echo.get(number)
            due = 0 if function is None else function.due(session.settings.detect_multiplier)
            time = min(time, due)
        if time < NEVER:
            self._schedule.start(session, time)
        else:
            self._schedule.stop(session)


def _fits(key: SessionKey, origin: Origin) -> bool:
    """Return whether a datagram may be of a session: no other address, device or port is taken."""
    return (
        key.peer == origin.peer
        and key.multihop == origin.multihop
        and key.local in {"", origin.local}
        and key.device in {"", origin.device}
    )
