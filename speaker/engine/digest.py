"""Checksums of the engine's state, one per part: equal states have equal checksums.

For recordings: an engine that processes the same inputs must reach the same state. Independent of
hashes and addresses in memory. The cost grows with the number of routes, so beyond `MAX_ROUTES`
only their counts are included. Reads and never changes the state.

=========  ====================================================================
sessions   the status of every peer: state, timers, counters, numbers of routes
timers     every deadline
tables     the number of routes of each table, and of its changes
adjRibIn   the received routes, and which of them are stale
locRib     all paths of every prefix, the best one first
routeSets  the same of the route sets
streams    the streams of best paths, and how much each of them has still to send
adjRibOut  the update groups, and their routes where they are stored (RFC 7911)
=========  ====================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from speaker.engine import views
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance import Instance
from speaker.engine.ribs import Ribs
from speaker.peer.engine_context import EngineContext
from speaker.rib.path import Path

MAX_ROUTES: Final = 50_000
"""Beyond this number the routes themselves are not in it: the checksum would delay sessions."""


def digest(
    context: EngineContext, instances: Mapping[str, Instance], streams: Iterable[str]
) -> dict[str, str]:
    """Return the checksums by part, at the context's present time.

    ``streams`` are the states of streams of best paths as text.
    """
    ordered = [instance for _, instance in sorted(instances.items())]
    sizes = [size for instance in ordered for size in _sizes(instance)]
    parts = {
        "sessions": _hash(
            msgspec.json.encode(views.peer_status(instance, peer))
            for instance in ordered
            for _, peer in sorted(instance.peers.items())
        ),
        "timers": _hash(
            repr((due, timer.name, owner.where)).encode()
            for (owner, timer), due in sorted(
                context.timers.items(),
                key=lambda item: (item[1], item[0][1].name, repr(item[0][0].where)),
            )
        ),
        "tables": _hash(repr(size).encode() for size in sizes),
        "streams": _hash(map(str.encode, streams)),
    }
    if sum(routes for *_, routes in sizes) <= MAX_ROUTES:
        names: dict[Path, bytes] = {}
        parts["adjRibIn"] = _hash(_adj_ribs_in(ordered, names))
        parts["locRib"] = _hash(
            line
            for instance in ordered
            for line in _ribs(instance.name, instance.outbound.loc, names)
        )
        parts["routeSets"] = _hash(
            line
            for instance in ordered
            for name, ribs in sorted(instance.outbound.route_sets.tables.items())
            for line in _ribs(f"{instance.name} {name}", ribs, names)
        )
        parts["adjRibOut"] = _hash(sorted(_adj_ribs_out(ordered, names)))
    return parts


def _hash(lines: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for line in lines:
        digest.update(len(line).to_bytes(8, "big"))
        digest.update(line)
    return digest.hexdigest()


def _sizes(instance: Instance) -> Iterator[tuple[str, str, int, int]]:
    """Iterate over table, family, revision and number of routes."""
    for name, ribs in [
        ("", instance.outbound.loc),
        *sorted(instance.outbound.route_sets.tables.items()),
    ]:
        for family, table in sorted(ribs.tables.items()):
            yield f"{instance.name} {name}", str(family), table.revision, len(table)
    for established in _with_routes(instance):
        for family in sorted(established.adj_in.families):
            size = established.adj_in.received(family)
            yield f"{instance.name} from {established.peer.name}", str(family), 0, size


def _with_routes(instance: Instance) -> list[EstablishedPeer]:
    """Return the Established peers and peers with stale routes, by name."""
    members = [*instance.established.values(), *instance.kept_routes.peers.values()]
    return sorted(members, key=lambda member: member.peer.name)


def _name(path: Path, names: dict[Path, bytes]) -> bytes:
    """Return a digest of a path's contents."""
    known = names.get(path)
    if known is None:
        source = path.source
        content = (
            source.name,
            source.sent_path_id,
            source.received_path_id,
            path.rejected,
            path.overrides,
        )
        known = names[path] = hashlib.blake2b(
            msgspec.json.encode((path.attributes, content)), digest_size=8
        ).digest()
    return known


def _grouped(groups: dict[bytes, list[bytes]]) -> Iterator[bytes]:
    for name, nlri in sorted(groups.items()):
        yield name
        yield from sorted(nlri)


def _ribs(name: str, ribs: Ribs, names: dict[Path, bytes]) -> Iterator[bytes]:
    for family, table in sorted(ribs.tables.items()):
        yield f"{name} {family}".encode()
        groups: dict[bytes, list[bytes]] = {}
        for nlri, paths in table.items():
            key = b"".join([_name(path, names) for path in paths])
            groups.setdefault(key, []).append(nlri)
        yield from _grouped(groups)


def _adj_ribs_in(instances: Iterable[Instance], names: dict[Path, bytes]) -> Iterator[bytes]:
    for instance in instances:
        for established in _with_routes(instance):
            for family in sorted(established.adj_in.families):
                yield f"{instance.name} {established.peer.name} {family}".encode()
                groups: dict[bytes, list[bytes]] = {}
                for nlri, path in established.adj_in.items(family):
                    groups.setdefault(_name(path, names), []).append(nlri)
                yield from _grouped(groups)
                yield b"stale"
                for path, stale in established.adj_in.stale_paths(family).items():
                    yield _name(path, names)
                    yield from sorted(stale)


def _adj_ribs_out(instances: Iterable[Instance], names: dict[Path, bytes]) -> Iterator[bytes]:
    for instance in instances:
        for group in instance.outbound.groups():
            parts = [repr(group.rules).encode(), b"%d" % group.left_out.total]
            parts += [member.peer.name.encode() for member in group.members]
            for family in group.rules.add_path:
                stored = group.stored_routes(family)
                parts += _grouped({_name(path, names): wires for path, wires in stored.items()})
            yield b"\n".join(parts)
