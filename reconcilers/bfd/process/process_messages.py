"""The messages between the agent and the BFD process, as frozen values.

Both begin with `Hello`. The process answers with all sessions that it has (`Statuses`, the last piece
with ``last``), and reports changes of state at once (`Changes`), everything else every few seconds. The
agent sets and removes sessions one by one, so that what it does not mention stays as it is.

Intervals are in microseconds; times of day are Unix time in seconds.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from reconcilers.process.codec import Codec
from speaker.bfd.session_values import SessionKey, Settings, State

REPORT_SECONDS: Final = 5.0
"""From one report of all sessions to the next one; changes of state are reported at once."""
VERSIONS: Final = (1, 1)
"""The first and the last version of the messages that this code speaks."""


class Hello(NamedTuple):
    """The first message in both directions. Versions that do not overlap end the connection."""

    program: str
    versions: tuple[int, int] = VERSIONS


class Wanted(NamedTuple):
    """A session with its settings."""

    key: SessionKey
    settings: Settings


class SetSessions(NamedTuple):
    """Sessions to have, with these settings; other settings than before change no state."""

    sessions: tuple[Wanted, ...]


class RemoveSessions(NamedTuple):
    """Sessions to end: AdminDown, until the neighbor has noticed."""

    keys: tuple[SessionKey, ...]


class Change(NamedTuple):
    """A session has changed its state."""

    key: SessionKey
    before: State
    after: State
    diagnostic: int
    remote_state: State
    remote_diagnostic: int
    remote_independent: bool
    """The neighbor's C bit."""
    local_discriminator: int
    detection_time: int
    """Of the session before the change."""


class Changes(NamedTuple):
    """Changes of state, in their order."""

    changes: tuple[Change, ...]


class SessionStatus(NamedTuple):
    """The status of a session in the process."""

    key: SessionKey
    settings: Settings
    """As the agent set them."""
    state: State
    diagnostic: int
    since: float
    """When the state changed last."""
    ups: int
    local_discriminator: int
    remote_discriminator: int
    remote_state: State
    remote_diagnostic: int
    remote_independent: bool
    desired_min_tx: int
    """Of this end: raised where the process has no real time."""
    required_min_rx: int
    remote_min_tx: int
    remote_min_rx: int
    remote_detect_multiplier: int
    transmit_interval: int
    detection_time: int
    packets_sent: int
    packets_received: int
    longest_gap: int
    problem: str
    """Why the session sends nothing; empty if it does."""
    echoes_sent: int = 0
    echoes_received: int = 0
    echo_problem: str = ""
    """Why it sends no echo packets; empty if it does, or shall not."""


class Statuses(NamedTuple):
    """The status of some sessions."""

    sessions: tuple[SessionStatus, ...]
    last: bool = False
    """True of the last piece of the listing that follows `Hello`."""


class Discarded(NamedTuple):
    """How many packets had no effect, for one reason."""

    reason: str
    packets: int


class ProcessStatus(NamedTuple):
    """The process's status of itself."""

    realtime: bool
    memory_locked: bool
    least_interval: int
    """To which shorter intervals are raised; 0 with real time."""
    lateness: int
    """The latest that a deadline was met."""
    discarded: tuple[Discarded, ...] = ()
    problems: tuple[str, ...] = ()


ToProcess: TypeAlias = Hello | SetSessions | RemoveSessions
FromProcess: TypeAlias = Hello | Statuses | Changes | ProcessStatus
Message = ToProcess | FromProcess

CODEC: Final[Codec[Message]] = Codec(
    Hello | SetSessions | RemoveSessions | Statuses | Changes | ProcessStatus, VERSIONS
)
