"""The check of Cilium's objects: names in overrides, and Advertisements, without effect. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from reconcilers.dialect import Admission
from reconcilers.model import Problem, ref_to
from resources.cilium.kinds import (
    ADVERTISEMENT,
    CLUSTER_CONFIG,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    PEER_CONFIG,
)
from resources.errors import shortened
from resources.kind import Kind
from resources.schema import did_you_mean
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.cilium.dialect import CiliumDialect


def without_effect(dialect: CiliumDialect, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield names in overrides that nothing has, and Advertisements that no PeerConfig selects.

    Objects of other kinds may be elsewhere: nothing is reported where there are none at all.
    """
    peers = _peers_of_instances(dialect, snapshot)
    for override in _rows(dialect, snapshot, NODE_CONFIG_OVERRIDE) if peers else ():
        ref = ref_to(NODE_CONFIG_OVERRIDE, override)
        for i, instance in enumerate(override.spec.bgp_instances):
            path = f"spec.bgpInstances[{i}]"
            if instance.name not in peers:
                text = _absent("instance", instance.name, peers)
                yield Problem((ref,), f"{path}.name", text, category="unresolved")
                continue
            known = peers[instance.name]
            for j, peer in enumerate(instance.peers):
                if peer.name not in known:
                    text = _absent("peer", peer.name, known)
                    yield Problem((ref,), f"{path}.peers[{j}].name", text, category="unresolved")
    configs = list(_rows(dialect, snapshot, PEER_CONFIG))
    selectors = [family.advertisements for row in configs for family in row.spec.families]
    for row in _rows(dialect, snapshot, ADVERTISEMENT) if configs else ():
        labels = row.metadata.labels
        if not any(selector is not None and selector.matches(labels) for selector in selectors):
            text = "no CiliumBGPPeerConfig selects it: none of its routes is advertised"
            ref = ref_to(ADVERTISEMENT, row)
            yield Problem((ref,), "metadata.labels", text, category="unresolved")


def _rows(dialect: CiliumDialect, snapshot: Snapshot, kind: Kind[Any]) -> Iterable[Any]:
    return dialect.tables.of(kind).all(snapshot)


def _peers_of_instances(dialect: CiliumDialect, snapshot: Snapshot) -> Mapping[str, set[str]]:
    """Return the names of all instances, of whichever node, each with the names of its peers."""
    peers: dict[str, set[str]] = {}
    for kind in (CLUSTER_CONFIG, NODE_CONFIG):
        for row in _rows(dialect, snapshot, kind):
            for instance in row.spec.bgp_instances:
                names = peers.setdefault(instance.name, set())
                names.update(peer.name for peer in instance.peers)
    return peers


def _absent(what: str, name: str, known: Iterable[str]) -> str:
    text = f"there is no {what} {shortened(name)} in a CiliumBGPClusterConfig"
    return f"{text}{did_you_mean(name, known)}"


ADMISSION: Final = Admission(without_effect=without_effect)
