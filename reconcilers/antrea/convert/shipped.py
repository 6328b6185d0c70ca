"""Reads a BGPPolicy. Pure."""

from __future__ import annotations

import msgspec

from reconcilers.antrea.convert.description import Description, Neighbor, Process, Services
from reconcilers.antrea.passwords import SECRET
from resources.antrea import BGPPolicy
from resources.antrea.bgppolicy import BGPPeer


def read_policy(row: BGPPolicy) -> Description:
    """Return the content of a policy."""
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
