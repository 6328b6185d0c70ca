"""BFD sessions in the local API: rows of the intent tables as items, and the path of the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from cells.api.model import BfdIntervalsItem, BfdItem
from cells.api.resource import ApiResource
from reconcilers.bfd_session import UNKNOWN, BfdCounters, BfdProcess, BfdSession
from reconcilers.intent.peer_names import chosen_peer
from reconcilers.intent_tables import IntentTables
from statedb import Database

MICROSECONDS: Final = 1_000_000


def bfd_resource(
    items: Callable[[str | None, str | None], Sequence[BfdItem]],
    **more: Any,  # noqa: ANN401
) -> ApiResource:
    """Return the path of the BFD sessions; ``more`` are further fields of the resource."""
    return ApiResource(
        path="/v1/bfd",
        kind="BfdSessionList",
        parameters=("peer", "instance"),
        read=lambda query: items(query.get("peer"), query.get("instance")),
        **more,
    )


def bfd_items(
    node: str, database: Database, intent: IntentTables, peer: str | None, instance: str | None
) -> list[BfdItem]:
    """Return the sessions that match, by instance and peer; ``peer`` is a name or an address."""
    snapshot = database.snapshot()
    chosen = chosen_peer(intent.peers.all(snapshot), peer, instance)
    process = next(intent.bfd_process.all(snapshot), None)
    return [
        bfd_item(node, row, intent.bfd_counters.get(snapshot, (row.instance, row.peer)), process)
        for row in sorted(intent.bfd_sessions.all(snapshot), key=lambda r: (r.instance, r.peer))
        if chosen(row.instance, row.peer, row.address)
    ]


def bfd_item(
    node: str, row: BfdSession, counters: BfdCounters | None, process: BfdProcess | None
) -> BfdItem:
    """Translate a session."""
    known = row.state != UNKNOWN
    echoes = counters if counters is not None and counters.echoes_sent else None
    return BfdItem(
        node=node,
        instance=row.instance,
        peer=row.peer,
        address=row.address or None,
        local_address=row.local_address or None,
        device=row.device or None,
        multihop=row.multihop,
        profile=row.profile or None,
        strict=row.strict,
        state=row.state,
        since_time=datetime.fromtimestamp(int(row.since), UTC) if row.since else None,
        diagnostic=row.diagnostic or None,
        remote_state=row.remote_state if row.remote_state != UNKNOWN else None,
        remote_diagnostic=row.remote_diagnostic or None,
        remote_independent=row.remote_independent if row.remote_discriminator else None,
        local_discriminator=row.local_discriminator or None,
        remote_discriminator=row.remote_discriminator or None,
        local_intervals=_intervals(row.desired_min_tx, row.required_min_rx, row.detect_multiplier),
        remote_intervals=_intervals(
            row.remote_min_tx, row.remote_min_rx, row.remote_detect_multiplier
        ),
        transmit_interval_seconds=_seconds(row.transmit_interval) if known else None,
        detection_seconds=_seconds(row.detection_time) if known else None,
        passive=row.passive,
        minimum_ttl=row.minimum_ttl if row.multihop else None,
        authentication=row.authentication or None,
        ups=row.ups,
        packets_sent=None if counters is None else counters.packets_sent,
        packets_received=None if counters is None else counters.packets_received,
        echoes_sent=echoes.echoes_sent if echoes else None,
        echoes_received=echoes.echoes_received if echoes else None,
        longest_gap_seconds=None if counters is None else _seconds(counters.longest_gap),
        lateness_seconds=None if process is None else _seconds(process.lateness),
        problem=row.problem or row.echo_problem or None,
    )


def _seconds(microseconds: int) -> float:
    return microseconds / MICROSECONDS


def _intervals(transmit: int, receive: int, multiplier: int) -> BfdIntervalsItem | None:
    if not multiplier:
        return None
    return BfdIntervalsItem(
        transmit_seconds=_seconds(transmit),
        receive_seconds=_seconds(receive),
        detect_multiplier=multiplier,
    )
