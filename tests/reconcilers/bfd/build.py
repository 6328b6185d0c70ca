"""What a BFD process reports."""

from __future__ import annotations

from reconcilers.bfd.process.process_messages import SessionStatus
from speaker.bfd.session_values import Diagnostic, SessionKey, Settings, State


def status_of(
    key: SessionKey,
    state: State = State.UP,
    *,
    settings: Settings | None = None,
    discriminator: int = 7,
    remote: State = State.UP,
    problem: str = "",
) -> SessionStatus:
    settings = settings or Settings()
    is_up = state is State.UP
    return SessionStatus(
        key=key,
        settings=settings,
        state=state,
        diagnostic=Diagnostic.NONE if is_up else Diagnostic.CONTROL_DETECTION_TIME_EXPIRED,
        since=1000.0,
        ups=1,
        local_discriminator=discriminator,
        remote_discriminator=9,
        remote_state=remote,
        remote_diagnostic=0,
        remote_independent=True,
        desired_min_tx=settings.desired_min_tx,
        required_min_rx=settings.required_min_rx,
        remote_min_tx=300_000,
        remote_min_rx=300_000,
        remote_detect_multiplier=3,
        transmit_interval=300_000,
        detection_time=900_000,
        packets_sent=10,
        packets_received=11,
        longest_gap=290_000,
        problem=problem,
    )
