"""Two BFD engines, and a line that loses, delays, reorders and duplicates packets, in virtual time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from speaker.bfd.engine import Engine, Origin, StateChange
from speaker.bfd.packet import Packet, decode
from speaker.bfd.poll_sequence import PollSequence
from speaker.bfd.session import Session
from speaker.bfd.session_values import SessionKey, Settings, State

MS = 1_000
SECOND = 1_000_000
LEFT, RIGHT = "192.0.2.1", "192.0.2.2"


def key_of(local: str, peer: str, *, device: str = "", multihop: bool = False) -> SessionKey:
    return SessionKey(peer, local, device, multihop)


def new_engine(seed: int = 1) -> Engine:
    return Engine(Random(seed).random)  # noqa: S311  no secret is made of it


class Delivery(NamedTuple):
    """What the line does with a packet: one delay for each copy; none: it is lost."""

    delays: tuple[int, ...]


def good(_: int) -> Delivery:
    """Deliver every packet after a millisecond."""
    return Delivery((MS,))


def lost(_: int) -> Delivery:
    return Delivery(())


@dataclass
class End:
    """One engine, its address and what it has reported."""

    address: str
    peer: str
    engine: Engine
    multihop: bool = False
    ttl: int = 255
    changes: list[StateChange] = field(default_factory=list)
    sent: list[tuple[int, Packet]] = field(default_factory=list)
    """Every packet with its time."""

    @property
    def key(self) -> SessionKey:
        return key_of(self.address, self.peer, multihop=self.multihop)

    @property
    def session(self) -> Session:
        return self.engine.sessions[self.key]

    @property
    def state(self) -> State:
        return self.session.state


class Pair:
    """Two ends and the line between them; `run` lets time pass."""

    def __init__(
        self,
        left: Settings | None = None,
        right: Settings | None = None,
        *,
        seed: int = 1,
        multihop: bool = False,
    ) -> None:
        self.now = 0
        self.line: Callable[[int], Delivery] = good
        self.left = End(LEFT, RIGHT, new_engine(seed), multihop)
        self.right = End(RIGHT, LEFT, new_engine(seed + 1), multihop)
        self._wire: list[tuple[int, int, bytes, End]] = []
        self._serial = 0
        if left is not None:
            self.left.engine.set_session(self.left.key, left, 0)
        if right is not None:
            self.right.engine.set_session(self.right.key, right, 0)

    @property
    def ends(self) -> tuple[End, End]:
        return self.left, self.right

    def configure(self, end: End, settings: Settings) -> None:
        end.engine.set_session(end.key, settings, self.now)

    def restart(self, end: End, settings: Settings, seed: int = 99) -> None:
        """Replace an engine by a new one, without its state."""
        end.engine = new_engine(seed)
        end.engine.set_session(end.key, settings, self.now)

    def run(self, microseconds: int) -> None:
        """Let time pass; packets arrive and deadlines are met at their own times."""
        until = self.now + microseconds
        while True:
            self._collect()
            times = [e.engine.next_deadline() for e in self.ends]
            times.append(self._wire[0][0] if self._wire else None)
            due = min((time for time in times if time is not None), default=until + 1)
            if due > until:
                break
            self.now = max(self.now, due)
            while self._wire and self._wire[0][0] <= self.now:
                _, _, octets, end = heapq.heappop(self._wire)
                origin = Origin(end.peer, end.address, "", end.multihop, end.ttl)
                end.engine.receive(octets, origin, self.now)
            for end in self.ends:
                end.engine.due(self.now)
        self.now = until

    def _collect(self) -> None:
        for end, other in ((self.left, self.right), (self.right, self.left)):
            for sent in end.engine.sent:
                packet = decode(sent.octets)
                assert isinstance(packet, Packet)
                end.sent.append((self.now, packet))
                for delay in self.line(self.now).delays:
                    self._serial += 1
                    heapq.heappush(self._wire, (self.now + delay, self._serial, sent.octets, other))
            end.changes.extend(end.engine.changes)
            end.engine.sent.clear()
            end.engine.changes.clear()

    def up(self) -> bool:
        return self.left.state is self.right.state is State.UP


def variables_of(session: Session) -> dict[str, Any]:
    """Return the variables of a session, with the parts that change in place."""
    poll = session.poll
    return {
        **vars(session),
        "poll": [getattr(poll, name) for name in PollSequence.__slots__],
        "received_sequence": session.received_sequence.number,
    }
