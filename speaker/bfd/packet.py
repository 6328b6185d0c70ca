"""The BFD control packet (RFC 5880 section 4.1), and the checks of section 6.8.6 on one packet."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from speaker.bfd.session_values import Discard, State

VERSION: Final = 1
HEADER: Final = struct.Struct("!BBBBIIIII")
"""Version and diagnostic, state and flags, Detect Mult, Length, two discriminators, three intervals."""

FLAG_POLL: Final = 0x20
FLAG_FINAL: Final = 0x10
FLAG_INDEPENDENT: Final = 0x08
"""Control Plane Independent (C)."""
FLAG_AUTHENTICATION: Final = 0x04
FLAG_DEMAND: Final = 0x02
FLAG_MULTIPOINT: Final = 0x01


class Packet(NamedTuple):
    """A control packet that is valid on its own. Intervals in microseconds."""

    diagnostic: int
    state: State
    poll: bool
    final: bool
    independent: bool
    demand: bool
    detect_multiplier: int
    my_discriminator: int
    your_discriminator: int
    desired_min_tx: int
    required_min_rx: int
    required_min_echo_rx: int
    authenticated: bool
    """The A bit: an authentication section follows the mandatory one."""
    octets: bytes
    """As long as its length field."""


def decode(octets: bytes) -> Packet | Discard:
    """Decode the payload of a datagram, or return the first check that it does not pass."""
    if octets and octets[0] >> 5 != VERSION:
        return Discard.VERSION
    if len(octets) < HEADER.size:
        return Discard.LENGTH
    first, flags, multiplier, length, mine, yours, tx, rx, echo = HEADER.unpack_from(octets)
    least = HEADER.size + 2 if flags & FLAG_AUTHENTICATION else HEADER.size
    if not least <= length <= len(octets):
        return Discard.LENGTH
    if not multiplier:
        return Discard.DETECT_MULT
    if flags & FLAG_MULTIPOINT:
        return Discard.MULTIPOINT
    if not mine:
        return Discard.MY_DISCRIMINATOR
    state = State(flags >> 6)
    if not yours and state not in {State.DOWN, State.ADMIN_DOWN}:
        return Discard.STATE
    return Packet(
        first & 0x1F,
        state,
        bool(flags & FLAG_POLL),
        bool(flags & FLAG_FINAL),
        bool(flags & FLAG_INDEPENDENT),
        bool(flags & FLAG_DEMAND),
        multiplier,
        mine,
        yours,
        tx,
        rx,
        echo,
        bool(flags & FLAG_AUTHENTICATION),
        octets[:length],
    )


def encode(packet: Packet) -> bytes:
    """Encode the mandatory section. With the A bit its length has room for a section of SHA1."""
    flags = packet.state << 6
    flags |= FLAG_POLL if packet.poll else 0
    flags |= FLAG_FINAL if packet.final else 0
    flags |= FLAG_INDEPENDENT if packet.independent else 0
    flags |= FLAG_AUTHENTICATION if packet.authenticated else 0
    flags |= FLAG_DEMAND if packet.demand else 0
    return HEADER.pack(
        VERSION << 5 | packet.diagnostic,
        flags,
        packet.detect_multiplier,
        HEADER.size + (SHA1_SECTION.size if packet.authenticated else 0),
        packet.my_discriminator,
        packet.your_discriminator,
        packet.desired_min_tx,
        packet.required_min_rx,
        packet.required_min_echo_rx,
    )


SHA1_SECTION: Final = struct.Struct("!BBBBI20s")
"""Auth Type, Auth Len, Auth Key ID, reserved, Sequence Number, Auth Key or Hash (section 4.4)."""
