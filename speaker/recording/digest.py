"""The state of a core in short, cheap enough to be noted while it works."""

from __future__ import annotations

from speaker.engine import Engine
from speaker.recording.lines import Digest


def digest(engine: Engine, now: float) -> Digest:
    """Return what two runs have to agree on: costs per peer, not per route."""
    peers = {}
    for status in engine.peers(now):
        counts = " ".join(
            f"{family.family}={family.received}/{family.accepted}/{family.advertised}"
            f"/{family.stale}"
            for family in status.families
        )
        peers[f"{status.instance}/{status.name}"] = (
            f"{status.state} flaps={status.flaps} in={status.messages_received}"
            f" out={status.messages_sent} {counts}"
        )
    tables = {}
    for instance in engine.instances():
        for family, count in engine.table_sizes(instance.name):
            tables[f"{instance.name}/{family}"] = count
    return Digest(peers, tables)
