"""BFD sessions as rows of StateDB. Pure."""

from __future__ import annotations

import msgspec

from reconcilers.bfd.process.process_messages import ProcessStatus, SessionStatus
from reconcilers.bfd_session import UNKNOWN, BfdCounters, BfdProcess, BfdSession
from reconcilers.model import Peer
from speaker.bfd.session_values import Diagnostic, Key, SessionKey, diagnostic_name

NO_ADDRESS = "no neighbor is known on the interface"
NO_PROCESS = "there is no connection to waggle-bfd"


def session_row(
    peer: Peer,
    key: SessionKey | None,
    status: SessionStatus | None,
    *,
    holds: bool,
    connected: bool,
    problem: str = "",
) -> BfdSession:
    """Return the row of a peer's BFD session; ``problem``: why it cannot have one."""
    strict = peer.bfd is not None and peer.bfd.strict
    row = BfdSession(
        instance=peer.instance,
        peer=peer.name,
        address="" if key is None else key.peer,
        local_address="" if key is None else key.local,
        device="" if key is None else key.device,
        multihop=key is not None and key.multihop,
        profile="" if peer.bfd is None else peer.bfd.name,
        strict=strict,
        holds_bgp=strict and holds,
        problem=NO_ADDRESS if key is None else problem,
    )
    if key is None or status is None or not connected:
        return row
    known = status.remote_discriminator != 0
    settings = status.settings
    return msgspec.structs.replace(
        row,
        state=str(status.state),
        diagnostic=_diagnostic(status.diagnostic),
        since=status.since,
        ups=status.ups,
        remote_state=str(status.remote_state) if known or status.ups else UNKNOWN,
        remote_diagnostic=_diagnostic(status.remote_diagnostic),
        remote_independent=status.remote_independent,
        local_discriminator=status.local_discriminator,
        remote_discriminator=status.remote_discriminator,
        desired_min_tx=status.desired_min_tx,
        required_min_rx=status.required_min_rx,
        detect_multiplier=settings.detect_multiplier,
        remote_min_tx=status.remote_min_tx,
        remote_min_rx=status.remote_min_rx,
        remote_detect_multiplier=status.remote_detect_multiplier,
        transmit_interval=status.transmit_interval,
        detection_time=status.detection_time,
        passive=settings.passive,
        minimum_ttl=settings.minimum_ttl,
        authentication=_authentication(settings.key),
        problem=problem or status.problem,
        echo_problem=status.echo_problem,
    )


def counters_row(peer: Peer, status: SessionStatus) -> BfdCounters:
    """Return the row of the counters of a peer's BFD session."""
    return BfdCounters(
        instance=peer.instance,
        peer=peer.name,
        packets_sent=status.packets_sent,
        packets_received=status.packets_received,
        echoes_sent=status.echoes_sent,
        echoes_received=status.echoes_received,
        longest_gap=status.longest_gap,
    )


def process_row(status: ProcessStatus | None, *, connected: bool) -> BfdProcess:
    """Return the row of the BFD process."""
    if status is None:
        return BfdProcess(connected=connected)
    return BfdProcess(
        connected=connected,
        realtime=status.realtime,
        lateness=status.lateness,
        discarded=tuple((each.reason, each.packets) for each in status.discarded),
        problems=status.problems,
    )


def _authentication(key: Key | None) -> str:
    if key is None:
        return ""
    return "meticulous SHA1" if key.meticulous else "SHA1"


def _diagnostic(value: int) -> str:
    return "" if value == Diagnostic.NONE else diagnostic_name(value)
