"""BFD sessions as the agent sees them: rows of StateDB, which APIs, statuses and metrics read.

Intervals are in microseconds, as in packets (RFC 5880 section 4.1); times of day are Unix time in
seconds. States and diagnostics are the texts of `speaker.bfd.session_values`.
"""

from __future__ import annotations

import msgspec

UNKNOWN = "Unknown"
"""The state of a session that the process has not reported: `BfdSession.problem` is why, if known."""
UP, DOWN, INIT, ADMIN_DOWN = "Up", "Down", "Init", "AdminDown"


class BfdSession(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """The BFD session of a peer; written when it changes. Peers of one address may share a session."""

    instance: str
    peer: str
    address: str = ""
    """The neighbor; empty until it is known, of a peer on an interface."""
    local_address: str = ""
    device: str = ""
    """The interface of link-local addresses, or the VRF; empty for the default one."""
    multihop: bool = False
    profile: str = ""
    """The name of the profile of the settings, if it has one."""
    strict: bool = False
    holds_bgp: bool = False
    """Whether BGP is kept down until BFD is Up; of ``strict`` alone."""

    state: str = UNKNOWN
    """`UP`, `DOWN`, `INIT`, `ADMIN_DOWN`; or `UNKNOWN`, also while there is no connection."""
    diagnostic: str = ""
    """Why the state changed last; empty without a reason (No Diagnostic)."""
    since: float = 0.0
    """When the state changed last; 0 while it is unknown."""
    ups: int = 0
    """How often the session came Up, as the process knows."""
    remote_state: str = UNKNOWN
    """The neighbor's, as its last packet had it."""
    remote_diagnostic: str = ""
    remote_independent: bool = False
    """The neighbor's C bit: its BFD continues while its control plane restarts."""
    local_discriminator: int = 0
    remote_discriminator: int = 0

    desired_min_tx: int = 0
    """Local intervals: as configured, or raised where the process may not use real time."""
    required_min_rx: int = 0
    detect_multiplier: int = 0
    remote_min_tx: int = 0
    """Intervals of the neighbor's packets; 0 before the first one."""
    remote_min_rx: int = 0
    remote_detect_multiplier: int = 0
    transmit_interval: int = 0
    """In use, before jitter; 0: no packets are sent."""
    detection_time: int = 0
    """In use; 0: packets of the neighbor are not waited for."""
    passive: bool = False
    minimum_ttl: int = 255
    authentication: str = ""
    """``SHA1`` or ``meticulous SHA1``; empty without."""

    problem: str = ""
    """Why there is no session, or why it sends nothing; empty if nothing is wrong."""
    echo_problem: str = ""
    """Why the session sends no echo packets; empty if it does, or shall not."""

    @property
    def up(self) -> bool:
        """Whether the path of this BFD session is known to work."""
        return self.state == UP


class BfdCounters(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """The counters of a session, as of the last reading."""

    instance: str
    peer: str
    packets_sent: int = 0
    packets_received: int = 0
    echoes_sent: int = 0
    echoes_received: int = 0
    longest_gap: int = 0
    """Between two received packets while Up, in microseconds."""


class BfdProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The process that has the sessions, as of the last reading."""

    connected: bool
    """False once the connection is lost: sessions go on, and what is known of them is old."""
    realtime: bool = False
    """Whether it is scheduled before ordinary processes (SCHED_FIFO)."""
    lateness: int = 0
    """The latest that a deadline was met, in microseconds."""
    discarded: tuple[tuple[str, int], ...] = ()
    """Received packets without effect, by reason (`speaker.bfd.session_values.Discard`)."""
    problems: tuple[str, ...] = ()
