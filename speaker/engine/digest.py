"""Checksums of the engine's state, one for each part: equal states have equal ones.

For recordings: an engine that is given the same inputs must come to the same state. Independent of
hashes and addresses in memory. Routes cost time in proportion to how many there are, so beyond
`MOST_ROUTES` only their numbers count. Reads, never changes.

=========  ====================================================================
sessions   every peer as people see it: state, timers, counters, numbers of routes
timers     every deadline
tables     how many routes each table has, and how often it was changed
adjRibIn   what the peers said, and what of it is stale
locRib     all paths of every prefix, the best one first
routeSets  the same of the route sets
adjRibOut  who is told the same, and what, where that is stored (RFC 7911)
=========  ====================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from speaker.engine import views
from speaker.engine.instance import EstablishedPeer, Instance
from speaker.engine.ribs import Ribs
from speaker.peer.engine_context import EngineContext
from speaker.rib.path import Path

MOST_ROUTES: Final = 50_000
"""Beyond this the routes themselves are left out: it would hold up the sessions."""


def digest(context: EngineContext, instances: Mapping[str, Instance]) -> dict[str, str]:
    """Return the checksums at the core's present time."""
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
    }
    if sum(routes for *_, routes in sizes) <= MOST_ROUTES:
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
            for name, ribs in sorted(instance.outbound.sets.items())
            for line in _ribs(f"{instance.name} {name}", ribs, names)
        )
        parts["adjRibOut"] = _hash(sorted(_adj_ribs_out(ordered, names)))
    return parts


def _hash(lines: Iterable[bytes]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for line in lines:
        found.update(len(line).to_bytes(8, "big"))
        found.update(line)
    return found.hexdigest()


def _sizes(instance: Instance) -> Iterator[tuple[str, str, int, int]]:
    """Iterate over table, family, revision and number of routes."""
    for name, ribs in [("", instance.outbound.loc), *sorted(instance.outbound.sets.items())]:
        for family, table in sorted(ribs.tables.items()):
            yield f"{instance.name} {name}", str(family), table.revision, len(table)
    for member in _members(instance):
        for family in sorted(member.adj_in.families):
            size = member.adj_in.received(family)
            yield f"{instance.name} from {member.peer.name}", str(family), 0, size


def _members(instance: Instance) -> list[EstablishedPeer]:
    """Return the sessions and the peers whose routes are kept without one."""
    members = [*instance.members.values(), *instance.restarting_peers.values()]
    return sorted(members, key=lambda member: member.peer.name)


def _name(path: Path, names: dict[Path, bytes]) -> bytes:
    """Return what is the same for equal paths."""
    known = names.get(path)
    if known is None:
        source = path.source
        content = (source.name, source.number, source.path_id, path.rejected, path.overrides)
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
        for member in _members(instance):
            for family in sorted(member.adj_in.families):
                yield f"{instance.name} {member.peer.name} {family}".encode()
                groups: dict[bytes, list[bytes]] = {}
                for nlri, path in member.adj_in.items(family):
                    groups.setdefault(_name(path, names), []).append(nlri)
                yield from _grouped(groups)
                yield b"stale"
                for path, stale in member.adj_in.stale_paths(family).items():
                    yield _name(path, names)
                    yield from sorted(stale)


def _adj_ribs_out(instances: Iterable[Instance], names: dict[Path, bytes]) -> Iterator[bytes]:
    for instance in instances:
        for group in instance.outbound.groups():
            found = [repr(group.rules).encode(), b"%d" % group.oversized]
            found += [member.peer.name.encode() for member in group.members]
            for family in group.rules.add_path:
                stored = group.stored_routes(family)
                found += _grouped({_name(path, names): wires for path, wires in stored.items()})
            yield b"\n".join(found)
