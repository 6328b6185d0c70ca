"""What is fuzzed: octets to the decoders, and a small program of hostile acts to a whole engine.

Each target takes any octets and returns nothing; it raises where something does not hold. The replay
of the corpus, the mutations in the tests and the coverage-guided harness all call these two. They
must be deterministic: the same octets are the same run.
"""

from __future__ import annotations

from speaker.api import RouteAttributes
from speaker.attribute import ErrorHandling, encode_attributes
from speaker.engine.inputs import (
    EnablePeer,
    RemoveRouteSet,
    RequestRefresh,
    ResetPeer,
    ShutDownPeer,
    UpdateRoutes,
)
from speaker.errors import BgpError
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.message import Notification, RouteRefresh, UpdateDecoder, decode_open
from speaker.message.header import frame_message
from speaker.negotiated import MAX_EXTENDED_MESSAGE, Negotiated
from speaker.peer.message_stream import MessageStream
from speaker.peer.session import Session
from tests.speaker.hostile import BASIC, INSTANCE, PROFILES, RICH, SEEDS, STATES, Arena

_BOTH = frozenset({IPV4_UNICAST, IPV6_UNICAST})
CONTEXTS = (
    Negotiated(),
    Negotiated(as4=False, families=frozenset({IPV4_UNICAST})),
    Negotiated(add_path_receive=_BOTH, extended_message=True, extended_next_hop=_BOTH),
    Negotiated(ebgp=False, peer_asn=65002, local_asn=65002),
    Negotiated(confederation=True, peer_asn=65002, local_asn=65001),
)
"""Sessions with which messages are read; the first octet of an input chooses one."""

_SEEDS = list(SEEDS.values())
_PROFILES = list(PROFILES)
MOST_ACTS = 200


def decode_octets(data: bytes) -> None:
    """Read octets as a stream of messages, in a context that the first one chooses.

    Only the package's own errors may come out, and what is accepted is written as it was read.
    """
    if not data:
        return
    session = CONTEXTS[data[0] % len(CONTEXTS)]
    decoder = UpdateDecoder(session)
    try:
        for kind, bodies in MessageStream(MAX_EXTENDED_MESSAGE).messages(data[1:]):
            for body in bodies:
                _decode_message(kind, body, decoder)
    except BgpError as error:
        assert str(error).isprintable()  # noqa: PT017  any BgpError will do


def _decode_message(kind: int, body: bytes, decoder: UpdateDecoder) -> None:
    if kind == 1:
        opened = decode_open(body)
        again = decode_open(opened.encode()[19:])
        assert again == opened
        assert all(str(capability).isprintable() for capability in opened.capabilities)
    elif kind == 2:
        _decode_update(body, decoder)
    elif kind == 3:
        message = Notification.decode(body)
        assert str(message).isprintable()
        assert message.encode()[19:][: len(body)] == body
    elif kind == 5:
        refresh = RouteRefresh.decode(body)
        assert refresh.encode()[19:] == body


def _decode_update(body: bytes, decoder: UpdateDecoder) -> None:
    update = decoder.decode(body)
    again = decoder.decode(body)
    assert again.announced == update.announced
    assert again.outcome == update.outcome
    attributes = update.decoded.attributes
    hash(attributes)
    as4 = decoder.session.as4
    octets = b"".join(encode_attributes(attributes, as4=as4))
    if update.outcome is ErrorHandling.NONE and update.announced:
        # The canonical form of what was accepted is accepted, and is the same.
        second = UpdateDecoder(decoder.session)
        hop = b"\x40\x03\x04\x0a\0\0\1"
        found = second.decode(b"\0\0" + (len(octets) + 7).to_bytes(2, "big") + octets + hop)
        assert found.outcome is ErrorHandling.NONE, found.faults
        written = b"".join(encode_attributes(found.decoded.attributes, as4=as4))
        assert written == octets


class Acts:
    """Octets as a program; behind their end there are zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def over(self) -> bool:
        return self._at >= len(self._data)

    def u8(self) -> int:
        self._at += 1
        return 0 if self._at > len(self._data) else self._data[self._at - 1]

    def take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]


def run_session(data: bytes) -> None:
    """Run the octets as a program against an engine, as its peer and as the network; then check.

    The first octet chooses how the peer is configured, the second the state that is begun in.
    """
    acts = Acts(data)
    choice, begun = acts.u8(), acts.u8()
    profile = _PROFILES[(choice & 0x7F) % len(_PROFILES)]
    arena = Arena(profile, passive=not choice & 0x80)
    arena.reach(STATES[(begun & 0x7F) % len(STATES)], RICH if begun & 0x80 else BASIC)
    for _ in range(MOST_ACTS):
        if acts.over:
            break
        _act(arena, acts)
    _look(arena)


def _act(arena: Arena, acts: Acts) -> None:
    act = acts.u8()
    seed = _SEEDS[(act & 0x1F) % len(_SEEDS)]
    match act >> 5:
        case 0:
            arena.send(acts.take(act & 0x1F))
        case 1:
            arena.send(seed)
        case 2:
            place, value = acts.u8() % len(seed), acts.u8()
            arena.send(seed[:place] + bytes((value,)) + seed[place + 1 :])
        case 3:
            place = acts.u8() % (len(seed) + 1)
            arena.send(seed[:place])
        case 4:
            for octet in seed:
                arena.send(bytes((octet,)))
        case 5:
            arena.send(frame_message(act & 7, acts.take(acts.u8())))
        case 6:
            arena.send(seed * (1 + acts.u8()))
        case _:
            _happen(arena, act & 0x1F, acts)


def _happen(arena: Arena, what: int, acts: Acts) -> None:
    match what:
        case 0 | 1 | 2 | 3:
            arena.wait(float(acts.u8() << what))
        case 4:
            arena.drop()
        case 5 | 6:
            arena.accept()
        case 7:
            arena.answer()
        case 8:
            arena.answer(refused=True)
        case 9:
            arena.queue(acts.u8() * 10_000)
        case 10 | 11:
            route = RouteAttributes(med=acts.u8()) if what == 10 else None
            nlri = b"\x18\x0a\x07" + bytes((acts.u8() % 4,))
            arena.give(UpdateRoutes(INSTANCE, None, {IPV4_UNICAST: {nlri: route}}))
        case 12:
            arena.give(ResetPeer(INSTANCE, "attacker", "again"))
        case 13:
            arena.give(ShutDownPeer(INSTANCE, "attacker", "enough"))
        case 14:
            arena.give(EnablePeer(INSTANCE, "attacker"))
        case 15:
            arena.give(RequestRefresh(INSTANCE, "attacker"))
        case 16:
            arena.give(RemoveRouteSet(INSTANCE, "nothing"))
        case _:
            arena.turn_to(acts.u8())


def _look(arena: Arena) -> None:
    arena.check()
    engine = arena.engine
    context = engine._context
    assert len(context.connections) <= 3
    assert len(context.timers) < 20
    for session in context.connections.values():
        assert isinstance(session, Session)
        assert session.stream._have <= MAX_EXTENDED_MESSAGE
    arena.wait(1000)
    arena.check()
