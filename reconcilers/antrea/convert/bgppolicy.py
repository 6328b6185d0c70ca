"""The content of a draft or a BGPPolicy in one form, and BGPPolicies: read, and written. Pure.

A field without an equivalent in what is written is a note.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from reconcilers.antrea.compile_node import CONNECT_RETRY_TIME, HOLD_TIME
from reconcilers.antrea.in_effect import FLAG
from reconcilers.antrea.node_facts import ROUTER_ID_ANNOTATION
from reconcilers.antrea.passwords import SECRET
from reconcilers.dialect import Notes
from reconcilers.model import ObjectRef
from resources.antrea import BGPPolicy
from resources.antrea.bgppolicy import MAX_RELEASED_ASN, BGPPeer
from resources.antrea.kinds import BGP_POLICY

HOSTNAME: Final = "kubernetes.io/hostname"
IP_TYPES: Final = ("ClusterIP", "ExternalIP", "LoadBalancerIP")
"""In the order in which they are written."""


class Services(msgspec.Struct, frozen=True):
    """Addresses of Services; None selects all."""

    ip_types: tuple[str, ...]
    service_selector: dict[str, Any] | None = None
    namespace_selector: dict[str, Any] | None = None
    path: str = ""
    """The path of its field in the object, for notes."""


class Neighbor(msgspec.Struct, frozen=True):
    """One peer; None is the default."""

    address: str
    asn: int
    path: str
    port: int | None = None
    ttl: int | None = None
    restart_time: int | None = None
    """0: graceful restart is off."""
    hold_time: int | None = None
    keepalive_time: int | None = None
    connect_retry_time: int | None = None
    secret: str | None = None


class Process(msgspec.Struct, frozen=True):
    """One BGP process."""

    path: str
    local_asn: int
    listen_port: int | None = None
    router_id: str | None = None
    confederation: dict[str, Any] | None = None
    services: tuple[Services, ...] = ()
    pod: bool = False
    egress: bool = False
    neighbors: tuple[Neighbor, ...] = ()


class Description(msgspec.Struct, frozen=True):
    """One policy."""

    name: str
    node_selector: dict[str, Any]
    processes: tuple[Process, ...]
    metadata: dict[str, dict[str, str]] = {}
    """Labels and annotations, where there are any."""


def policy_ref(name: str) -> ObjectRef:
    """Return the reference to a BGPPolicy that is read or written, for notes of its conversion."""
    return ObjectRef(BGP_POLICY.name, "", name)


def read_policy(row: BGPPolicy) -> Description:
    """Return the content of a BGPPolicy in the form that it is converted from."""
    spec, wanted = row.spec, row.spec.advertisements
    types = wanted.service.ip_types if wanted.service is not None else ()
    path = "spec.advertisements.service"
    process = Process(
        "spec",
        spec.local_asn,
        spec.listen_port,
        None,
        None if spec.confederation is None else msgspec.to_builtins(spec.confederation),
        (Services(types, path=path),) if types else (),
        wanted.pod is not None,
        wanted.egress is not None,
        tuple(_neighbor(peer, f"spec.bgpPeers[{i}]") for i, peer in enumerate(spec.bgp_peers)),
    )
    selector = msgspec.to_builtins(spec.node_selector)
    metadata = {"labels": row.metadata.labels, "annotations": row.metadata.annotations}
    described = {key: dict(texts) for key, texts in metadata.items() if texts}
    return Description(row.metadata.name, selector, (process,), described)


def _neighbor(peer: BGPPeer, path: str) -> Neighbor:
    restarts = peer.graceful_restart_enabled is not False
    return Neighbor(
        peer.address,
        peer.asn,
        path,
        peer.port,
        peer.multihop_ttl,
        peer.graceful_restart_time_seconds if restarts else 0,
        peer.hold_time_seconds,
        peer.keepalive_interval_seconds,
        peer.connect_retry_seconds,
        SECRET,
    )


def to_bgppolicy(given: Description, notes: Notes) -> list[dict[str, Any]]:
    """Return the BGPPolicy that a description is converted to, after the Node with an annotation."""
    name, process = given.name, given.processes[0] if given.processes else None
    if process is None:
        notes.add(policy_ref(name), "spec.bgpConfigurations", "is empty: there is no process")
        return []
    for other in given.processes[1:]:
        text = f"is not converted: a node has one process, that of {process.path}"
        notes.add(policy_ref(name), other.path, text)
    spec: dict[str, Any] = {"nodeSelector": given.node_selector, "localASN": process.local_asn}
    if process.local_asn > MAX_RELEASED_ASN:
        notes.add(
            policy_ref(name), f"{process.path}.localASN", f"has four octets, which needs {FLAG}"
        )
    if process.listen_port is not None:
        spec["listenPort"] = process.listen_port
    spec["advertisements"] = _advertisements(name, process, notes)
    spec["bgpPeers"] = [_peer(name, peer, notes) for peer in process.neighbors]
    return [
        *_annotated(given, process, notes),
        {
            "apiVersion": "crd.antrea.io/v1alpha1",
            "kind": "BGPPolicy",
            "metadata": {"name": name, **given.metadata},
            "spec": spec,
        },
    ]


def _advertisements(name: str, process: Process, notes: Notes) -> dict[str, Any]:
    types = set()
    for service in process.services:
        types |= set(service.ip_types)
        for field, selector in (
            ("serviceSelector", service.service_selector),
            ("namespaceSelector", service.namespace_selector),
        ):
            if selector is not None:
                kinds = ", ".join(service.ip_types) or "no type"
                text = f"is not converted: the addresses ({kinds}) of all Services are advertised"
                notes.add(policy_ref(name), f"{service.path}.{field}", text)
    advertised: dict[str, Any] = {}
    if types:
        advertised["service"] = {
            "ipTypes": [type_name for type_name in IP_TYPES if type_name in types]
        }
    if process.pod:
        advertised["pod"] = {}
    if process.egress:
        advertised["egress"] = {}
    return advertised


def _peer(name: str, peer: Neighbor, notes: Notes) -> dict[str, Any]:
    converted: dict[str, Any] = {"address": peer.address, "asn": peer.asn}
    if peer.asn > MAX_RELEASED_ASN:
        notes.add(policy_ref(name), f"{peer.path}.asn", f"has four octets, which needs {FLAG}")
    if peer.port is not None:
        converted["port"] = peer.port
    if peer.ttl is not None:
        converted["multihopTTL"] = peer.ttl
    hold = peer.hold_time or HOLD_TIME
    timers = (
        ("holdTimeSeconds", peer.hold_time, HOLD_TIME),
        ("keepaliveIntervalSeconds", peer.keepalive_time, hold // 3),
        ("connectRetrySeconds", peer.connect_retry_time, CONNECT_RETRY_TIME),
    )
    proposed: dict[str, Any] = {
        field: value for field, value, default in timers if value not in (None, default)
    }
    if peer.restart_time == 0:
        proposed["gracefulRestartEnabled"] = False
    elif peer.restart_time is not None:
        converted["gracefulRestartTimeSeconds"] = peer.restart_time
    for field in proposed:
        notes.add(
            policy_ref(name), peer.path, f"{field} is proposed for a later release: it needs {FLAG}"
        )
    if peer.secret is not None:
        key = f"{peer.address}-{peer.asn}"
        text = f"copy the password of Secret {peer.secret} to the key {key} of Secret {SECRET}"
        notes.add(policy_ref(name), f"{peer.path}.authSecretRef", text)
    return converted | proposed


def _annotated(given: Description, process: Process, notes: Notes) -> list[dict[str, Any]]:
    """Return the Node whose router ID the draft has; a note where the selector names no node."""
    if process.router_id is None:
        return []
    labels = given.node_selector.get("matchLabels")
    hostname = labels.get(HOSTNAME) if isinstance(labels, dict) else None
    if not hostname:
        text = (
            f"annotate one node with {ROUTER_ID_ANNOTATION}={process.router_id}: it is of one node"
        )
        notes.add(policy_ref(given.name), f"{process.path}.routerID", text)
        return []
    metadata = {"name": hostname, "annotations": {ROUTER_ID_ANNOTATION: process.router_id}}
    return [{"apiVersion": "v1", "kind": "Node", "metadata": metadata}]
