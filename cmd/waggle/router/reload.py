"""Applies a configuration to a running speaker: the whole file at start, differences at a reload.

Sessions whose configuration did not change stay up. Nothing is read or checked here.
"""

from __future__ import annotations

from speaker.api import RouteAttributes
from speaker.nlri import Family
from speaker.server import Speaker
from waggle.router.config import INSTANCE, Config

ORIGINATED = RouteAttributes()


def apply(speaker: Speaker, before: Config | None, after: Config) -> None:
    """Change a speaker from one configuration (None: nothing is configured) to another.

    Prefixes that were announced by `waggle router announce` stay, as do neighbours that were shut
    down and whose configuration did not change.
    """
    if before is None or before.collectors() != after.collectors():
        speaker.set_collectors(after.collectors())
    # Another AS or router ID recreates the instance, with its peers and routes.
    speaker.set_instance(after.instance())
    # Routes before peers, so that the initial table is complete.
    changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
    old = set() if before is None else set(before.originated())
    new = after.originated()
    for family, nlri in sorted(old.difference(new)):
        changes.setdefault(family, {})[nlri] = None
    for family, nlri in new:
        if (family, nlri) not in old:
            changes.setdefault(family, {})[nlri] = ORIGINATED
    if changes:
        speaker.update_local(INSTANCE, changes)
    known = {} if before is None else {peer.name: peer for peer in before.peers()}
    peers = after.peers()
    # Removals first: a neighbour may have another name, and its former one the same address.
    kept = {peer.name: type(peer) for peer in peers}
    for name, peer in known.items():
        if kept.get(name) is not type(peer):
            speaker.remove_peer(INSTANCE, name)
    for peer in peers:
        if known.get(peer.name) != peer:
            speaker.set_peer(INSTANCE, peer)
