"""States, diagnostics, settings and counters of BFD sessions."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

SLOW_INTERVAL: Final = 1_000_000
"""The least transmit interval of a session that is not Up, in microseconds (RFC 5880 section 6.8.3)."""


class State(enum.IntEnum):
    """RFC 5880 section 4.1: the state of a session, as in packets."""

    ADMIN_DOWN = 0
    DOWN = 1
    INIT = 2
    UP = 3

    def __str__(self) -> str:
        """Return the state's name in the RFC."""
        return _STATE_NAMES[self]


_STATE_NAMES: Final = {
    State.ADMIN_DOWN: "AdminDown",
    State.DOWN: "Down",
    State.INIT: "Init",
    State.UP: "Up",
}


class Diagnostic(enum.IntEnum):
    """RFC 5880 section 4.1: the reason of the last change of state."""

    NONE = 0
    CONTROL_DETECTION_TIME_EXPIRED = 1
    ECHO_FUNCTION_FAILED = 2
    NEIGHBOR_SIGNALED_SESSION_DOWN = 3
    FORWARDING_PLANE_RESET = 4
    PATH_DOWN = 5
    CONCATENATED_PATH_DOWN = 6
    ADMINISTRATIVELY_DOWN = 7
    REVERSE_CONCATENATED_PATH_DOWN = 8

    def __str__(self) -> str:
        """Return the name in the RFC."""
        return _DIAGNOSTIC_NAMES[self]


_DIAGNOSTIC_NAMES: Final = {
    Diagnostic.NONE: "No Diagnostic",
    Diagnostic.CONTROL_DETECTION_TIME_EXPIRED: "Control Detection Time Expired",
    Diagnostic.ECHO_FUNCTION_FAILED: "Echo Function Failed",
    Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN: "Neighbor Signaled Session Down",
    Diagnostic.FORWARDING_PLANE_RESET: "Forwarding Plane Reset",
    Diagnostic.PATH_DOWN: "Path Down",
    Diagnostic.CONCATENATED_PATH_DOWN: "Concatenated Path Down",
    Diagnostic.ADMINISTRATIVELY_DOWN: "Administratively Down",
    Diagnostic.REVERSE_CONCATENATED_PATH_DOWN: "Reverse Concatenated Path Down",
}


def diagnostic_name(value: int) -> str:
    """Return the name of a received diagnostic; values above 8 are reserved."""
    try:
        return str(Diagnostic(value))
    except ValueError:
        return f"Reserved ({value})"


class Discard(enum.Enum):
    """Why a received packet has no effect: the checks of RFC 5880 section 6.8.6 in their order.

    `TTL` precedes them (RFC 5881 section 5; of several hops a limit of our own, as
    RFC 5883 section 3 has none).
    """

    TTL = "TTL"
    VERSION = "Version"
    LENGTH = "Length"
    DETECT_MULT = "Detect Mult"
    MULTIPOINT = "Multipoint"
    MY_DISCRIMINATOR = "My Discriminator"
    YOUR_DISCRIMINATOR = "Your Discriminator"
    STATE = "State"
    NO_SESSION = "no session"
    AUTHENTICATION_MISSING = "authentication missing"
    AUTHENTICATION_UNEXPECTED = "authentication not configured"
    AUTHENTICATION_FAILED = "authentication failed"
    ADMIN_DOWN = "AdminDown"


class SessionKey(msgspec.Struct, frozen=True, cache_hash=True):
    """The identity of a session: the pair of addresses, the device or VRF, single hop or multihop.

    ``peer`` and ``local`` are text in canonical form, ``device`` the name of an interface or VRF device
    and empty for the default one. A single-hop session of IPv6 link-local addresses has its interface.
    """

    peer: str
    local: str
    device: str = ""
    multihop: bool = False


class Key(msgspec.Struct, frozen=True):
    """A key of SHA1 authentication (RFC 5880 section 6.7.4)."""

    key_id: int
    secret: bytes
    """1 to 20 octets."""
    meticulous: bool = True

    def __repr__(self) -> str:
        """Return everything but the secret."""
        return f"Key(key_id={self.key_id}, meticulous={self.meticulous})"


class Settings(msgspec.Struct, frozen=True):
    """The configuration of a session; intervals in microseconds."""

    desired_min_tx: int = 300_000
    required_min_rx: int = 300_000
    """0: the peer shall send no periodic packets."""
    detect_multiplier: int = 3
    passive: bool = False
    """True: no packet is sent before one was received (RFC 5880 section 6.1)."""
    minimum_ttl: int = 255
    """Of received packets; 255 for a single hop (RFC 5881 section 5)."""
    echo_interval: int = 0
    """Of our own echo packets; 0: none are sent. Not for multihop (RFC 5883 section 3)."""
    required_min_echo_rx: int = 0
    """The least interval of the peer's echo packets that this node returns; 0: none."""
    key: Key | None = None
    independent: bool = True
    """The C bit: BFD continues while the control plane restarts (RFC 5882 section 4.3)."""
    admin_down: bool = False

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError."""
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name}: {value} is not within {low} to {high}")
        if self.key is not None and not 1 <= len(self.key.secret) <= _SHA1_OCTETS:
            raise ValueError(f"key: a secret has 1 to {_SHA1_OCTETS} octets")


_SHA1_OCTETS: Final = 20
_UINT32: Final = 0xFFFF_FFFF
_RANGES: Final = (
    ("desired_min_tx", 1, _UINT32),
    ("required_min_rx", 0, _UINT32),
    ("detect_multiplier", 1, 255),
    ("minimum_ttl", 1, 255),
    ("echo_interval", 0, _UINT32),
    ("required_min_echo_rx", 0, _UINT32),
)


class Saved(msgspec.Struct, frozen=True):
    """The state with which another process continues a session without a change of state."""

    key: SessionKey
    state: State
    diagnostic: Diagnostic
    local_discriminator: int
    remote_discriminator: int
    remote_state: State
    remote_diagnostic: int
    remote_min_rx: int
    remote_desired_min_tx: int
    remote_detect_multiplier: int
    remote_min_echo_rx: int
    remote_independent: bool
    transmit_sequence: int
    """The next sequence number of authentication."""
    source_port: int = 0
    """Of its packets; 0: none was chosen."""
