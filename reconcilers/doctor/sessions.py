"""Checks of sessions: passwords, hops, AS numbers, and what else keeps them down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconcilers.dialect import Check, Evidence, Finding
from reconcilers.dialect.diagnosis import Json
from resources.enumeration import counted_are

ESTABLISHED: Final = "Established"
MANY_FLAPS: Final = 3
OWN_AS: Final = "own AS in the AS path"
"""Status of a received route that is a loop (`speaker.rib.inbound`)."""


def _down(evidence: Evidence) -> Iterator[tuple[str, Json]]:
    for node in evidence.answered:
        for peer in node.peers:
            if peer["state"] != ESTABLISHED:
                yield node.node, peer


def _texts(peer: Json) -> str:
    return "; ".join(str(peer[k]) for k in ("reason", "lastError", "likelyCause") if peer.get(k))


def passwords(evidence: Evidence) -> Iterator[Finding]:
    """Check that both ends of sessions have the TCP MD5 password, or neither."""
    with_password: dict[str, set[bool]] = {}
    for node in evidence.answered:
        for peer in node.peers:
            has_password = peer.get("authentication") is not None
            with_password.setdefault(str(peer.get("address")), set()).add(has_password)
    for where, peer in _down(evidence):
        has_password = peer.get("authentication") is not None
        if "TCP MD5" in str(peer.get("likelyCause", "")):
            side = "has a TCP MD5 password" if has_password else "has no TCP MD5 password"
            other = ""
            if len(with_password[str(peer.get("address"))]) > 1:
                other = "; other nodes differ in that for the same peer"
            yield Finding(
                node=where,
                object=peer["name"],
                evidence=f"no packet is answered ({peer.get('reason')}); this node {side}{other}",
                remedy="compare the password of both ends (authSecretRef, passwordSecret), then "
                "firewalls: with a wrong digest kernels drop packets silently (RFC 2385); the "
                "router's kernel counts them (nstat TCPMD5NotFound, TCPMD5Unexpected)",
            )


def hops(evidence: Evidence) -> Iterator[Finding]:
    """Check the hops of sessions, and for sessions that lose long messages on the way (MTU)."""
    for where, peer in _down(evidence):
        if "hops" in str(peer.get("likelyCause", "")):
            yield Finding(
                node=where,
                object=peer["name"],
                evidence=f"{peer.get('reason')}",
                remedy="configure this node's address as a neighbour on the router; where it is not "
                "on the same link, set ebgpMultihop on both ends, and TTL security on both or none",
            )
    for node in evidence.answered:
        for peer in node.peers:
            if peer.get("flaps", 0) >= MANY_FLAPS and "hold timer" in _texts(peer).lower():
                yield Finding(
                    level="warning",
                    node=node.node,
                    object=peer["name"],
                    evidence=f"it was lost {peer['flaps']} times, at last: {peer.get('lastError')}",
                    remedy="try full packets: ping -M do -s 1472 ROUTER; if they are lost, the MTU of "
                    "the path is smaller than that of the interface: long UPDATEs never arrive, and "
                    "short KEEPALIVEs do. Otherwise look at the load of both ends",
                )


def as_numbers(evidence: Evidence) -> Iterator[Finding]:
    """Check that ends of sessions agree on AS numbers, and no routes are dropped as AS loops."""
    for where, peer in _down(evidence):
        if "Bad Peer AS" in _texts(peer):
            yield Finding(
                node=where,
                object=peer["name"],
                evidence=f"{peer.get('reason')} (here AS {peer.get('localASN')}, the peer as AS "
                f"{peer.get('peerASN', 'any')})",
                remedy="set localASN and peerASN as the router has them (remote-as and its own)",
            )
    if evidence.cluster is None:
        return  # nodes with one AS number drop each other's routes on purpose: not decidable
    on_purpose = _shared_on_purpose(evidence)
    for node in evidence.answered:
        if any(peer.get("localASN") in on_purpose for peer in node.peers):
            continue
        loops = [route for route in node.received if OWN_AS in str(route.get("status", ""))]
        for name in sorted({str(route.get("peer")) for route in loops}):
            count = sum(route.get("peer") == name for route in loops)
            yield Finding(
                level="warning",
                node=node.node,
                object=name,
                evidence="1 received route has this node's AS number in its path"
                if count == 1
                else f"{count} received routes have this node's AS number in their path",
                remedy="two places have one AS number: give one of them another, or accept it on "
                "purpose (allowas-in; nodes with one AS number do not need each other's routes)",
            )


def _shared_on_purpose(evidence: Evidence) -> frozenset[int]:
    """Return AS numbers that nodes share where most nodes share one, as the nodes of a rack do."""
    owners: dict[int, set[str]] = {}
    of_statuses = evidence.cluster.sessions if evidence.cluster is not None else {}
    sessions = [(node.node, peer) for node in evidence.answered for peer in node.peers]
    sessions += [(name, session) for name, listed in of_statuses.items() for session in listed]
    for name, session in sessions:
        if session.get("localASN"):
            owners.setdefault(session["localASN"], set()).add(name)
    shared = {asn: nodes for asn, nodes in owners.items() if len(nodes) > 1}
    sharing = set().union(*shared.values())
    alone = set().union(*owners.values()) - sharing
    return frozenset(shared) if len(sharing) > len(alone) else frozenset()


def established(evidence: Evidence) -> Iterator[Finding]:
    """Check that sessions are up; findings of other checks are not repeated."""
    known = {
        (finding.node, finding.object)
        for check in (passwords, hops, as_numbers)
        for finding in check(evidence)
    }
    for where, peer in _down(evidence):
        is_other = "refused" in str(peer.get("reason")) or "Bad BGP Identifier" in _texts(peer)
        if (where, peer["name"]) in known or is_other:
            continue
        cause = f"; likely {peer['likelyCause']}" if peer.get("likelyCause") else ""
        yield Finding(
            node=where,
            object=peer["name"],
            evidence=f"{peer['state']}: {peer.get('reason', 'unknown')}{cause}",
            remedy=f"from the node: ip route get {peer.get('address')}, ping, and the router's log",
        )


def advertised(evidence: Evidence) -> Iterator[Finding]:
    """Check that Established sessions carry all routes that are to be advertised."""
    for node in evidence.answered:
        for peer in node.peers:
            for family in peer.get("advertised", ()):
                if count := family.get("leftOut"):
                    routes = counted_are(count, f"{family['family']} route")
                    yield Finding(
                        node=node.node,
                        object=peer["name"],
                        evidence=f"{routes} not advertised: {family.get('reason')}",
                        remedy="waggle explain has the reason of each route",
                    )


MD5: Final = Check(
    name="md5", question="passwords are on both ends, or none", needs="agents", run=passwords
)
TTL: Final = Check(name="ttl", question="hops and MTU fit", needs="agents", run=hops)
ASNS: Final = Check(name="asns", question="AS numbers agree", needs="agents", run=as_numbers)
SESSIONS: Final = Check(
    name="sessions",
    question="no session is down for another reason",
    needs="agents",
    run=established,
)
ROUTES: Final = Check(
    name="routes", question="sessions carry all routes", needs="agents", run=advertised
)
