"""Applies a configuration to a running speaker: the whole file at start, differences at a reload.

Sessions whose configuration did not change stay up. Nothing is read or checked here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from speaker.api import DynamicPeerConfig, PeerConfig, RouteAttributes, RouteChanges
from speaker.nlri import Family
from speaker.server import Speaker
from waggle.router_config import INSTANCE, Config

ORIGINATED = RouteAttributes()
SLICE_PREFIXES: Final = 2500
"""Prefixes that change in one turn of the event loop: a file may have any number of them."""
TURN_SECONDS: Final = 0.02
"""For changes of neighbours: another export policy of a full table takes longer for each of them."""
AnyPeer = PeerConfig | DynamicPeerConfig


def _unheld(peer: AnyPeer) -> AnyPeer:
    return peer


class Changes(NamedTuple):
    """The differences between two files."""

    prefixes: Sequence[RouteChanges]
    """Changes of originated prefixes, in slices."""
    peers: Sequence[tuple[str, AnyPeer | None]]
    """See `peer_changes`."""


def changes_between(before: Config | None, after: Config) -> Changes:
    """Compare two files (None: nothing is configured).

    It parses each prefix of both, and compares their policies: a task for a thread.
    """
    return Changes(
        _prefix_changes(before, after),
        peer_changes(() if before is None else before.peers(), after.peers()),
    )


def _prefix_changes(before: Config | None, after: Config) -> list[RouteChanges]:
    old = set() if before is None else set(before.originated())
    new = dict.fromkeys(after.originated())
    changed: list[tuple[Family, bytes, RouteAttributes | None]]
    changed = [(*prefix, None) for prefix in sorted(old.difference(new))]
    changed += [(*prefix, ORIGINATED) for prefix in new if prefix not in old]
    slices: list[RouteChanges] = []
    for start in range(0, len(changed), SLICE_PREFIXES):
        some: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for family, nlri, attributes in changed[start : start + SLICE_PREFIXES]:
            some.setdefault(family, {})[nlri] = attributes
        slices.append(some)
    return slices


def apply(
    speaker: Speaker,
    before: Config | None,
    after: Config,
    redistribute: Callable[[Config], None] = lambda _: None,
    held: Callable[[AnyPeer], AnyPeer] = _unheld,
) -> None:
    """Change a speaker at one go, as at the start; see `steps`."""
    for _ in steps(speaker, before, after, changes_between(before, after), redistribute, held):
        pass


def steps(
    speaker: Speaker,
    before: Config | None,
    after: Config,
    changes: Changes,
    redistribute: Callable[[Config], None],
    held: Callable[[AnyPeer], AnyPeer],
) -> Iterator[None]:
    """Change a speaker from one configuration (None: nothing is configured) to another, in steps.

    ``changes`` are `changes_between` the two. ``redistribute`` announces routes of the kernel,
    once the file's own prefixes are announced. ``held`` returns a neighbour as it is while it waits.

    Prefixes that were announced by `waggle router announce` stay, and neighbours that were shut down
    stay down.
    """
    if before is None or before.collectors() != after.collectors():
        speaker.set_collectors(after.collectors())
    # Another AS or router ID recreates the instance, with its peers and routes.
    speaker.set_instance(after.instance())
    # Routes before peers, so that the initial table is complete.
    for place, prefixes in enumerate(changes.prefixes):
        if place:
            yield
        speaker.update_local(INSTANCE, prefixes)
    redistribute(after)
    began = time.monotonic()
    for name, peer in changes.peers:
        if time.monotonic() - began >= TURN_SECONDS:
            yield
            began = time.monotonic()
        if peer is None:
            speaker.remove_peer(INSTANCE, name)
        else:
            speaker.set_peer(INSTANCE, held(peer))


def peer_changes(
    before: Sequence[AnyPeer], after: Sequence[AnyPeer]
) -> list[tuple[str, AnyPeer | None]]:
    """Return the changes of neighbours and of prefixes of neighbours, in order; None removes one.

    A session passes between a prefix and a neighbour of its own with both sets of rules in force: no
    rule applies to it that only a part of the two files has.
    """
    known = {peer.name: peer for peer in before}
    wanted = {peer.name: peer for peer in after}
    changed = [peer for peer in after if known.get(peer.name) != peer]
    gone = [peer for name, peer in known.items() if name not in wanted]
    of_other_kind = [
        peer
        for name, peer in known.items()
        if name in wanted and type(wanted[name]) is not type(peer)
    ]
    # A neighbour with another name may have the address of a former one, which goes first. The others
    # take their sessions over from a prefix, before that changes.
    former = {_end(peer) for peer in gone}
    neighbors = [peer for peer in changed if _is_neighbor(peer)]
    return [
        *_removed(of_other_kind),
        *((peer.name, peer) for peer in neighbors if _end(peer) not in former),
        *((peer.name, peer) for peer in changed if not _is_neighbor(peer)),
        *_removed(peer for peer in gone if _is_neighbor(peer)),
        *((peer.name, peer) for peer in neighbors if _end(peer) in former),
        *_removed(peer for peer in gone if not _is_neighbor(peer)),
    ]


def _removed(peers: Iterable[AnyPeer]) -> Iterator[tuple[str, None]]:
    return ((peer.name, None) for peer in peers)


def _is_neighbor(peer: AnyPeer) -> bool:
    return isinstance(peer, PeerConfig)


def _end(peer: AnyPeer) -> tuple[str | None, str | None]:
    return (peer.address, peer.interface) if isinstance(peer, PeerConfig) else (peer.prefix, None)
