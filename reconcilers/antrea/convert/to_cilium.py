"""Writes the equivalent objects of Cilium's API v2, as JSON. Pure.

A policy is a CiliumBGPClusterConfig with an instance for each process; each peer has a
CiliumBGPPeerConfig, each process a CiliumBGPAdvertisement.
"""

from __future__ import annotations

from typing import Any, Final

from reconcilers.antrea.compile_node import CONNECT_RETRY_TIME, HOLD_TIME
from reconcilers.antrea.convert.bgppolicy import (
    Description,
    Neighbor,
    Process,
    Services,
    policy_ref,
)
from reconcilers.dialect import Notes

API_VERSION: Final = "cilium.io/v2"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
RESTART_TIME: Final = 120
"""Antrea's default, in seconds."""
LABEL: Final = "bgp-policy"


def to_cilium(given: Description, notes: Notes) -> list[dict[str, Any]]:
    """Return the equivalent objects of Cilium's API v2 of a BGPPolicy's content."""
    instances, objects = [], []
    for i, process in enumerate(given.processes):
        name = given.name if len(given.processes) == 1 else f"{given.name}-{i}"
        _note_process(given.name, process, notes)
        peers = []
        for j, peer in enumerate(process.neighbors):
            own = f"{name}-{j}"
            peers.append(
                {
                    "name": own,
                    "peerAddress": peer.address,
                    "peerASN": peer.asn,
                    "peerConfigRef": {"name": own},
                }
            )
            objects.append(
                _object("CiliumBGPPeerConfig", own, _peer_config(given, name, peer, notes))
            )
        instance: dict[str, Any] = {"name": name, "localASN": process.local_asn}
        instance["localPort"] = process.listen_port or 179
        instances.append({**instance, "peers": peers})
        entries = _advertisements(given.name, process, notes)
        advertisement = _object("CiliumBGPAdvertisement", name, {"advertisements": entries})
        advertisement["metadata"]["labels"] = {LABEL: name}
        objects.append(advertisement)
    spec: dict[str, Any] = {"bgpInstances": instances}
    if given.node_selector:
        spec["nodeSelector"] = given.node_selector
    config = _object("CiliumBGPClusterConfig", given.name, spec)
    config["metadata"] |= given.metadata
    return [config, *objects]


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _note_process(name: str, process: Process, notes: Notes) -> None:
    if process.router_id is not None:
        text = "set it in the CiliumBGPNodeConfigOverride of the node"
        notes.add(policy_ref(name), f"{process.path}.routerID", text)
    if process.confederation is not None:
        text = "is not converted: Cilium's API has no confederations"
        notes.add(policy_ref(name), f"{process.path}.confederation", text)
    if process.egress:
        text = "is not converted: Cilium's API advertises no egress IPs"
        notes.add(policy_ref(name), f"{process.path}.advertisements", f"egress {text}")


def _peer_config(given: Description, process: str, peer: Neighbor, notes: Notes) -> dict[str, Any]:
    hold = peer.hold_time or HOLD_TIME
    restart = RESTART_TIME if peer.restart_time is None else peer.restart_time
    graceful: dict[str, Any] = {"enabled": bool(restart)}
    if restart:
        graceful["restartTimeSeconds"] = restart
    family = {
        "afi": "ipv6" if ":" in peer.address else "ipv4",
        "safi": "unicast",
        "advertisements": {"matchLabels": {LABEL: process}},
    }
    spec: dict[str, Any] = {
        "transport": {"peerPort": peer.port or 179},
        "timers": {
            "connectRetryTimeSeconds": peer.connect_retry_time or CONNECT_RETRY_TIME,
            "holdTimeSeconds": hold,
            "keepAliveTimeSeconds": peer.keepalive_time or max(1, hold // 3),
        },
        "gracefulRestart": graceful,
        "ebgpMultihop": peer.ttl or 1,
        "families": [family],
    }
    if peer.secret is not None:
        text = (
            "if the session has a password, name a Secret with the key password in authSecretRef of "
            "the CiliumBGPPeerConfig"
        )
        notes.add(policy_ref(given.name), peer.path, text)
    return spec


def _advertisements(name: str, process: Process, notes: Notes) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    if process.pod:
        entries.append({"advertisementType": "PodCIDR"})
    for service in process.services:
        selector = _selector(name, service, notes)
        if service.ip_types and selector is not None:
            entries.append(
                {
                    "advertisementType": "Service",
                    "service": {"addresses": list(service.ip_types)},
                    "selector": selector,
                }
            )
    return entries


def _selector(name: str, services: Services, notes: Notes) -> dict[str, Any] | None:
    """Return the selector of Services; None where a namespace cannot be selected."""
    selector = dict(services.service_selector or {})
    if services.namespace_selector is None:
        return selector
    labels = services.namespace_selector.get("matchLabels") or {}
    if set(services.namespace_selector) == {"matchLabels"} and set(labels) == {NAMESPACE_NAME}:
        key = "io.kubernetes.service.namespace"
        selector["matchLabels"] = {
            **(selector.get("matchLabels") or {}),
            key: labels[NAMESPACE_NAME],
        }
        return selector
    text = f"is not converted: Cilium's API selects namespaces by {NAMESPACE_NAME} only"
    notes.add(
        policy_ref(name),
        f"{services.path}.namespaceSelector",
        f"{', '.join(services.ip_types)} {text}",
    )
    return None
