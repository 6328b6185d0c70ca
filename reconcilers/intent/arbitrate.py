"""Arbitration between dialects: which one has a peer's address, a listening port, an instance's name.

Two instances of different dialects cannot both have a session with one address in one VRF, nor
listen on one port of it. The dialect that has it keeps it (also over a restart, where `Owners` is
kept); otherwise the older object gets it: by creationTimestamp, where an absent one is the oldest,
then by kind, namespace and name. The other is not configured, with a problem that names both, and gets
it when the first one goes. A dialect that has not been read keeps what it had before a restart. Within
one dialect its own rules apply. Pure.

A name is different: the other instance gets another name, and keeps that one for as long as it
exists, as a change of the name would reset its sessions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconcilers.age import Age, age
from reconcilers.model import Instance, InstanceImport, ObjectRef, Peer, Problem

Claim = tuple[str, str, str]
"""A claim: `PEER`, "port" or "instance"; the VRF, empty for the default one; and the address
(a link-local one with ``%interface``), the port or the name. Or `RENAMED`, the name that the dialect
gives, and the name that the instance has."""
PEER: Final = "peer"
RENAMED: Final = "renamed"
NO_OBJECT: Final = ObjectRef("", "", "")
"""In place of the object of what no object configures: it is the oldest."""
Owners = Mapping[Claim, str]
"""The dialect that has each claim."""
Created = Callable[[ObjectRef], str]
"""Returns the creationTimestamp of an object, or an empty string."""
Names = dict[tuple[str, str], str]
"""The names of instances, by dialect and the name that the dialect gives."""


class Claimant(NamedTuple):
    """One dialect's claim, with the object that it comes from."""

    dialect: str
    object: ObjectRef | None
    what: str
    """The instance or peer, for people."""


class Arbitrated(NamedTuple):
    """The rows in effect, the problems of the others, and the owners from now on."""

    instances: list[Instance]
    peers: list[Peer]
    problems: list[Problem]
    owners: dict[Claim, str]
    """All claims: a dialect that comes later may contest any of them."""


class Owned(NamedTuple):
    """The present owners of claims."""

    owners: Owners
    """The owners of the last decision."""
    pending: Collection[str]
    """Dialects that have not been read."""
    created: Created

    def pending_owner(self, claim: Claim) -> str | None:
        """Return the owner of a claim for arbitration, if this dialect has not been read."""
        owner = self.owners.get(claim)
        return owner if owner in self.pending else None


def arbitrate(
    instances: Iterable[Instance],
    peers: Iterable[Peer],
    owners: Owners,
    created: Created,
    pending: Collection[str] = (),
) -> Arbitrated:
    """Decide every claim of the dialects; ``owners`` are the owners of the last decision.

    ``pending`` are dialects that have not been read: no row is theirs, and they keep their claims.
    """
    unique, sessions = list(instances), list(peers)
    before = Owned(owners, pending, created)
    names, owned = _names(unique, before)
    vrfs = {(row.dialect, row.name): row.vrf or "" for row in unique}
    problems: list[Problem] = []
    kept = _listeners(unique, names, before, problems, owned)
    claims: dict[Claim, list[Claimant]] = {}
    for peer in sessions:
        claims.setdefault(_peer_claim(peer, vrfs), []).append(_of_peer(peer))
    winners = _winners(claims, before)
    sessions_kept: list[Peer] = []
    for peer in sessions:
        claim = _peer_claim(peer, vrfs)
        winner = winners[claim]
        instance = names.get((peer.dialect, peer.instance), peer.instance)
        if winner.dialect == peer.dialect:
            sessions_kept.append(
                peer if instance == peer.instance else replace(peer, instance=instance)
            )
            continue
        vrf = f" in VRF {claim[1]!r}" if claim[1] else ""
        text = (
            f"peer {peer.name!r} is not configured: its address {claim[2]}{vrf} belongs to "
            f"{_described(winner)} until that peer is removed"
        )
        problems.append(_problem(_of_peer(peer), winner, text, (instance, peer.name)))
    owned |= {claim: winner.dialect for claim, winner in winners.items()}
    if pending:
        owned |= {claim: owner for claim, owner in owners.items() if owner in pending}
    return Arbitrated(kept, sessions_kept, problems, owned)


def _names(instances: list[Instance], before: Owned) -> tuple[Names, dict[Claim, str]]:
    """Give each instance a name that no other instance has."""
    kept = {
        (dialect, configured): name
        for (what, configured, name), dialect in before.owners.items()
        if what == RENAMED
    }
    names: Names = {}
    contenders: dict[Claim, list[Claimant]] = {}
    for row in instances:
        key = (row.dialect, row.name)
        if key in kept:
            names[key] = kept[key]
        else:
            contenders.setdefault(_name_claim(row.name), []).append(_of_instance(row))
    taken = set(names.values())
    if before.pending:
        taken.update(name for (dialect, _), name in kept.items() if dialect in before.pending)
    winners = _winners(contenders, before)
    owned: dict[Claim, str] = {}
    for dialect, configured in sorted((row.dialect, row.name) for row in instances):
        claim = _name_claim(configured)
        name = names.get((dialect, configured))
        if name is None and winners[claim].dialect == dialect and configured not in taken:
            name = configured
            owned[claim] = dialect
        if name is None:
            name = f"{dialect}.{configured}"
            while name in taken or _name_claim(name) in winners:
                name = f"{dialect}.{name}"
        if name != configured:
            owned[RENAMED, configured, name] = dialect
        names[dialect, configured] = name
        taken.add(name)
    return names, owned


def _listeners(
    instances: list[Instance],
    names: Names,
    before: Owned,
    problems: list[Problem],
    owned: dict[Claim, str],
) -> list[Instance]:
    """Return the instances with their names; an instance that does not get its port does not listen."""
    claims: dict[Claim, list[Claimant]] = {}
    for row in instances:
        claim = _port_claim(row)
        if claim is not None:
            claims.setdefault(claim, []).append(_of_instance(row))
    winners = _winners(claims, before)
    kept = []
    for row in instances:
        claim, arbitrated = _port_claim(row), row
        if claim is not None and winners[claim].dialect != row.dialect:
            arbitrated = replace(arbitrated, listen_port=None)
            vrf = f" in VRF {row.vrf!r}" if row.vrf else ""
            text = (
                f"instance {row.name!r} does not listen: port {row.listen_port}{vrf} belongs to "
                f"{_described(winners[claim])} until that instance is removed"
            )
            problems.append(_problem(_of_instance(row), winners[claim], text, ()))
        name = names[row.dialect, row.name]
        if name != row.name:
            arbitrated = replace(arbitrated, name=name, configured_name=row.name)
        imports = tuple(_renamed(imported, row.dialect, names) for imported in row.imports)
        if imports != row.imports:
            arbitrated = replace(arbitrated, imports=imports)
        kept.append(arbitrated)
    owned |= {claim: winner.dialect for claim, winner in winners.items()}
    return kept


def _renamed(row: InstanceImport, dialect: str, names: Names) -> InstanceImport:
    """Return an import by the name that the instance of the dialect has."""
    name = names.get((dialect, row.instance), row.instance)
    return row if name == row.instance else replace(row, instance=name)


# Claims


def _name_claim(name: str) -> Claim:
    return ("instance", "", name)


def _port_claim(row: Instance) -> Claim | None:
    return None if row.listen_port is None else ("port", row.vrf or "", str(row.listen_port))


def _peer_claim(row: Peer, vrfs: Mapping[tuple[str, str], str]) -> Claim:
    vrf = vrfs.get((row.dialect, row.instance), "")
    if row.address is None:
        return (PEER, vrf, f"%{row.interface}")
    address = ipaddress.ip_address(row.address)
    # Only a link-local address may be another router's at each interface (RFC 4007 section 6).
    zone = f"%{row.interface}" if row.interface is not None and address.is_link_local else ""
    return (PEER, vrf, f"{address}{zone}")


# Claimants


def _of_instance(row: Instance) -> Claimant:
    return Claimant(row.dialect, row.origin, f"instance {row.name!r}")


def _of_peer(row: Peer) -> Claimant:
    origin = row.origins[0] if row.origins else None
    return Claimant(row.dialect, origin, f"peer {row.name!r}")


def _described(claimant: Claimant) -> str:
    of = "" if claimant.object is None else f" of {claimant.object}"
    return f"{claimant.what}{of} (dialect {claimant.dialect})"


def _winners(claims: Mapping[Claim, list[Claimant]], before: Owned) -> dict[Claim, Claimant]:
    return {
        claim: (
            _winner(claim, claimants, before)
            if before.pending or len(claimants) > 1
            else claimants[0]
        )
        for claim, claimants in claims.items()
    }


def _winner(claim: Claim, claimants: list[Claimant], before: Owned) -> Claimant:
    pending = before.pending_owner(claim)
    if pending is not None:
        what = "peer" if claim[0] == PEER else "instance"
        return Claimant(pending, None, f"the {what} of an object that has not been read yet")
    if len({claimant.dialect for claimant in claimants}) == 1:
        return claimants[0]
    owner = before.owners.get(claim)
    present = [claimant for claimant in claimants if claimant.dialect == owner]

    def order(claimant: Claimant) -> tuple[Age, str]:
        ref = claimant.object
        of_object = age("", NO_OBJECT) if ref is None else age(before.created(ref), ref)
        return (of_object, claimant.dialect)

    return min(present or claimants, key=order)


def _problem(
    loser: Claimant, winner: Claimant, text: str, unconfigured: tuple[str, ...]
) -> Problem:
    objects = tuple(ref for ref in (loser.object, winner.object) if ref is not None)
    return Problem(objects, "", text, unconfigured, category="conflict", dialect=loser.dialect)
