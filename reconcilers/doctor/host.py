"""Checks of hosts: the port of BGP, what the kernel supports, MTUs, router IDs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from reconcilers.dialect import Check, Evidence, Finding, NodeEvidence
from reconcilers.dialect.diagnosis import Json
from reconcilers.doctor.sessions import ESTABLISHED
from resources.pages import reference


def port(evidence: Evidence) -> Iterator[Finding]:
    """Check that hosts listen on the port of BGP where they shall, and that peers do."""
    for node in evidence.answered:
        for instance in node.host.get("instances", ()):
            if text := instance.get("listenError"):
                yield Finding(
                    node=node.node,
                    object=instance["name"],
                    evidence=text,
                    remedy="end the other BGP speaker on this node (ss -ltnp), give the agent "
                    "NET_BIND_SERVICE for a port below 1024, or set localPort to -1",
                )
        for peer in node.peers:
            if peer["state"] != ESTABLISHED and "refused" in peer.get("reason", ""):
                yield Finding(
                    node=node.node,
                    object=peer["name"],
                    evidence=f"{peer.get('address')}: {peer['reason']}",
                    remedy="start BGP on the router, open TCP 179 there for this node, or correct "
                    "peerPort",
                )


def kernel(evidence: Evidence) -> Iterator[Finding]:
    """Check that the kernels of hosts support what sessions and routes need."""
    for node in evidence.answered:
        has_password = any(peer.get("authentication") == "TCP MD5" for peer in node.peers)
        supports = node.host.get("supports", {})
        if has_password and supports.get("tcpMD5") is False:
            text = "peers have TCP MD5 passwords, which this kernel does not support"
            remedy = "use a kernel with CONFIG_TCP_MD5SIG, or remove the passwords on both sides"
            yield Finding(node=node.node, evidence=text, remedy=remedy)
        has_vrf = any(instance.get("vrf") for instance in node.host.get("instances", ()))
        if has_vrf and supports.get("vrf") is False:
            text = "instances are in VRFs, which this kernel does not support"
            remedy = "load the module vrf, or use a kernel with CONFIG_NET_VRF"
            yield Finding(node=node.node, evidence=text, remedy=remedy)
        has_ipv6 = any(":" in str(peer.get("address", "")) for peer in node.peers)
        if has_ipv6 and supports.get("ipv6") is False:
            text = "peers have IPv6 addresses, and IPv6 is disabled"
            yield Finding(node=node.node, evidence=text, remedy="enable IPv6 (sysctl disable_ipv6)")
        for part in node.status.get("degraded", ()):
            if part["path"].split("/")[0] in ("kernel", "kernel-routes", "bfd"):
                remedy = (
                    f"{reference('kernel')} and {reference('bfd')} describe what the message names"
                )
                yield Finding(
                    level="warning",
                    node=node.node,
                    object=part["path"],
                    evidence=part["message"],
                    remedy=remedy,
                )


def mtus(evidence: Evidence) -> Iterator[Finding]:
    """Check that an interface has one MTU on all hosts: a lower one loses long UPDATEs."""
    by_name: dict[str, Counter[int]] = {}
    for node in evidence.answered:
        for interface in node.host.get("interfaces", ()):
            by_name.setdefault(interface["name"], Counter())[interface["mtu"]] += 1
    for node in evidence.answered:
        for interface in node.host.get("interfaces", ()):
            name, mtu = interface["name"], interface["mtu"]
            usual = by_name[name].most_common(1)[0]
            if mtu != usual[0] and by_name[name][mtu] < usual[1]:
                yield Finding(
                    level="warning",
                    node=node.node,
                    object=name,
                    evidence=f"its MTU is {mtu}, and {usual[0]} on {usual[1]} other nodes",
                    remedy=f"set one MTU on both ends: ip link set {name} mtu {usual[0]}",
                )


def router_ids(evidence: Evidence) -> Iterator[Finding]:
    """Check that router IDs of hosts are unique, with their peers (RFC 4271, RFC 6286)."""
    owners: dict[str, list[str]] = {}
    for node in evidence.answered:
        for router_id in _router_ids(node):
            owners.setdefault(router_id, []).append(node.node)
    remedy = (
        "give each node its own: routerID of a CiliumBGPNodeConfigOverride, or the router's own"
    )
    for router_id, nodes in owners.items():
        if len(nodes) > 1:
            text = f"router ID {router_id} is that of {', '.join(nodes[:3])}"
            yield Finding(evidence=text, remedy=remedy)
    for node in evidence.answered:
        for peer in node.peers:
            texts = (str(peer.get("reason", "")), str(peer.get("lastError", "")))
            if any("Bad BGP Identifier" in text for text in texts):
                text = next(text for text in texts if "Bad BGP Identifier" in text)
                yield Finding(node=node.node, object=peer["name"], evidence=text, remedy=remedy)
            elif owner := _others_with_its_router_id(evidence, node, peer, owners):
                text = f"the peer's router ID {peer['peerRouterID']} is that of {owner[0]}, too"
                # Between ASes it is allowed (RFC 6286), and confuses route reflectors and people.
                yield Finding(
                    level="warning",
                    node=node.node,
                    object=peer["name"],
                    evidence=text,
                    remedy=remedy,
                )


def _others_with_its_router_id(
    evidence: Evidence, node: NodeEvidence, peer: Json, owners: dict[str, list[str]]
) -> list[str]:
    """Return the nodes that have the router ID of a peer, and that are not the peer."""
    # Nodes may be peers of each other: that one then has a session with this node's router ID.
    own = _router_ids(node)
    at_peer = {
        other.node
        for other in evidence.answered
        if other is not node and any(p.get("peerRouterID") in own for p in other.peers)
    }
    return [name for name in owners.get(str(peer.get("peerRouterID")), ()) if name not in at_peer]


def _router_ids(node: NodeEvidence) -> set[str]:
    """Return the router IDs of a node; its own instances may share one."""
    return {i["routerID"] for i in node.host.get("instances", ()) if i.get("routerID")}


PORT: Final = Check(name="port", question="BGP listens, and peers do", needs="agents", run=port)
KERNEL: Final = Check(
    name="kernel", question="kernels support what is used", needs="agents", run=kernel
)
MTU: Final = Check(name="mtu", question="interfaces have one MTU", needs="agents", run=mtus)
ROUTER_IDS: Final = Check(
    name="router-ids", question="router IDs are unique", needs="agents", run=router_ids
)
