"""Arbitration between dialects: who gets a peer's address, a listening port, an instance's name.

Two instances of different dialects cannot both have a session with one address in one VRF, nor
listen on one port of it. The dialect that has it keeps it (also over a restart, where `Owners` is
kept); otherwise the older object gets it: by creationTimestamp, where an absent one is the oldest,
then by kind, namespace and name. The other one is left out, with a problem that names both, and gets
it when the first one goes. Within one dialect its own rules count. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from reconcilers.model import Instance, ObjectRef, Peer, Problem

Claim = tuple[str, str, str]
"""What is claimed: "peer", "port" or "instance"; the VRF, empty for the default one; and the address
(with ``%interface``), the port or the name."""
Owners = Mapping[Claim, str]
"""The dialect that has each claim."""


class Claimant(NamedTuple):
    """One dialect's claim, with the object that it comes from."""

    dialect: str
    object: ObjectRef | None


class Arbitrated(NamedTuple):
    """The rows that count, what the others are left out for, and who has what from now on."""

    instances: list[Instance]
    peers: list[Peer]
    problems: list[Problem]
    owners: dict[Claim, str]
    """Only contested claims and those of earlier contests need it, but all are kept: the next
    dialect may claim any of them."""


def arbitrate(
    instances: Iterable[Instance],
    peers: Iterable[Peer],
    owners: Owners,
    created: Callable[[ObjectRef], str],
) -> Arbitrated:
    """Decide every claim; ``created`` returns an object's creationTimestamp, or an empty string."""
    found = list(instances)
    vrfs = {(row.dialect, row.name): row.vrf or "" for row in found}
    sessions = [(row, _peer_claim(row, vrfs)) for row in peers]
    claims: dict[Claim, list[Claimant]] = {}
    for row in found:
        for claim in _instance_claims(row):
            claims.setdefault(claim, []).append(Claimant(row.dialect, row.origin))
    for peer, claim in sessions:
        origin = peer.origins[0] if peer.origins else None
        claims.setdefault(claim, []).append(Claimant(peer.dialect, origin))
    winners = {
        claim: _winner(claimants, owners.get(claim), created) for claim, claimants in claims.items()
    }
    problems: list[Problem] = []
    names: dict[tuple[str, str], str] = {}
    kept: list[Instance] = []
    for row in found:
        made = row
        port, name = _port_claim(row), _name_claim(row)
        if port is not None and winners[port].dialect != row.dialect:
            what = f"instance {row.name!r} does not listen: port {row.listen_port}"
            problems.append(_problem(row.dialect, row.origin, winners[port], what, ()))
            made = replace(made, listen_port=None)
        if winners[name].dialect != row.dialect:
            made = replace(made, name=f"{row.dialect}.{row.name}")
        names[row.dialect, row.name] = made.name
        kept.append(made)
    sessions_kept: list[Peer] = []
    for peer, claim in sessions:
        instance = names.get((peer.dialect, peer.instance), peer.instance)
        winner = winners[claim]
        if winner.dialect == peer.dialect:
            sessions_kept.append(
                peer if instance == peer.instance else replace(peer, instance=instance)
            )
            continue
        what = f"peer {peer.name!r} is left out: its address {claim[2]}"
        origin = peer.origins[0] if peer.origins else None
        problems.append(_problem(peer.dialect, origin, winner, what, (instance, peer.name)))
    return Arbitrated(
        kept, sessions_kept, problems, {claim: winners[claim].dialect for claim in winners}
    )


def _instance_claims(row: Instance) -> Iterable[Claim]:
    port = _port_claim(row)
    return (_name_claim(row),) if port is None else (_name_claim(row), port)


def _name_claim(row: Instance) -> Claim:
    return ("instance", "", row.name)


def _port_claim(row: Instance) -> Claim | None:
    return None if row.listen_port is None else ("port", row.vrf or "", str(row.listen_port))


def _peer_claim(row: Peer, vrfs: Mapping[tuple[str, str], str]) -> Claim:
    end = row.address or ""
    if row.interface is not None:
        end = f"{end}%{row.interface}"
    return ("peer", vrfs.get((row.dialect, row.instance), ""), end)


def _winner(
    claimants: list[Claimant], owner: str | None, created: Callable[[ObjectRef], str]
) -> Claimant:
    if len({claimant.dialect for claimant in claimants}) == 1:
        return claimants[0]
    present = [claimant for claimant in claimants if claimant.dialect == owner]

    def age(claimant: Claimant) -> tuple[str, tuple[str, str, str], str]:
        ref = claimant.object
        if ref is None:
            return ("", ("", "", ""), claimant.dialect)
        return (created(ref), (ref.kind, ref.namespace, ref.name), claimant.dialect)

    return min(present or claimants, key=age)


def _problem(
    dialect: str, loser: ObjectRef | None, winner: Claimant, what: str, leaves_out: tuple[str, ...]
) -> Problem:
    objects = tuple(ref for ref in (loser, winner.object) if ref is not None)
    owner = f"{winner.object} ({winner.dialect})" if winner.object is not None else winner.dialect
    return Problem(
        objects,
        "",
        f"{what} belongs to {owner}",
        leaves_out,
        category="conflict",
        dialect=dialect,
    )
