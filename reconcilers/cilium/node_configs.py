"""Generates a NodeConfig for each selected node, and the conditions of ClusterConfigs and PeerConfigs.

Pure. A node belongs to one ClusterConfig: the present owner keeps it, a new node goes to the oldest
ClusterConfig that selects it (by creationTimestamp, then name), and the others get the condition
ConflictingClusterConfig. The owner is stored in the NodeConfig's owner reference. A missing PeerConfig
is a condition and keeps no NodeConfig from being generated. Source: Cilium's operator.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.age import Age, age
from reconcilers.cilium.objects import Objects, controller_of
from reconcilers.model import Condition, Generated, ObjectRef, Problem
from reconcilers.sliced_work import QUICK_PER_PIECE, Pieces, Slices
from resources.cilium.clusterconfig import CiliumBGPClusterConfig, Instance, Peer
from resources.cilium.condition_types import (
    CONFLICTING_CLUSTER_CONFIG,
    MISSING_AUTH_SECRET,
    MISSING_PEER_CONFIGS,
    NO_MATCHING_NODE,
)
from resources.cilium.nodeconfig import CiliumBGPNodeConfig, NodeConfigSpec, NodeInstance, NodePeer
from resources.cilium.nodeconfigoverride import (
    CiliumBGPNodeConfigOverride,
    InstanceOverride,
    PeerOverride,
)
from resources.cilium.peerconfig import CiliumBGPPeerConfig
from resources.core import Node
from resources.enumeration import enumerate_some
from resources.meta import ObjectMeta, OwnerReference

API_VERSION = "cilium.io/v2"
CLUSTER_CONFIG = "CiliumBGPClusterConfig"
PEER_CONFIG = "CiliumBGPPeerConfig"
NODE_CONFIG = "CiliumBGPNodeConfig"


PIECES_OF_CONFIG: Final = 5
"""The share of a slice that one ClusterConfig takes."""
MAX_NAMES = 5
"""Nodes that one message names."""


class NodeConfigs(NamedTuple):
    """The generated NodeConfigs, and the conditions and problems of their ClusterConfigs."""

    node_configs: dict[str, CiliumBGPNodeConfig]
    """By node."""
    owners: dict[str, str]
    """The ClusterConfig of each node."""
    conditions: list[Condition]
    problems: list[Problem]


class _Selection(NamedTuple):
    """The nodes that each ClusterConfig selects, and the owner of each node."""

    ordered: list[CiliumBGPClusterConfig]
    """From the oldest."""
    selected: dict[str, list[str]]
    owners: dict[str, str]
    foreign: frozenset[str]
    """Nodes whose NodeConfig another writer has created."""


def generate(
    objects: Objects, nodes: Iterable[Node], owners: Mapping[str, str], pieces: Pieces
) -> Slices[NodeConfigs]:
    """Generate the NodeConfigs of the nodes that ClusterConfigs select.

    Stored NodeConfigs change only with a ClusterConfig as their controller. ``owners`` is the
    ClusterConfig that each node had at the last call.
    """
    configs = objects.cluster_configs.values()
    selection = yield from _select(configs, nodes, objects.node_configs, owners, pieces)
    known_peer_configs = frozenset(objects.peer_configs)
    node_configs: dict[str, CiliumBGPNodeConfig] = {}
    conditions: list[Condition] = []
    problems: list[Problem] = []
    for config in selection.ordered:
        name = config.metadata.name
        nodes_of_config = selection.selected[name]
        for node in nodes_of_config:
            if node not in selection.foreign and selection.owners[node] == name:
                node_configs[node] = node_config(config, node, objects.overrides.get(node))
        others = _conflicting(name, selection)
        problems += _problems(name, others, selection)
        missing = _missing_peer_configs(config, known_peer_configs)
        conditions += _conditions(config, bool(nodes_of_config), missing, others)
        if pieces.fill_slice(PIECES_OF_CONFIG * (1 + len(nodes_of_config) // QUICK_PER_PIECE)):
            yield
    kept = {node: name for node, name in selection.owners.items() if node in node_configs}
    return NodeConfigs(node_configs, kept, conditions, problems)


def _select(
    configs: Iterable[CiliumBGPClusterConfig],
    nodes: Iterable[Node],
    present: Mapping[str, CiliumBGPNodeConfig],
    owners: Mapping[str, str],
    pieces: Pieces,
) -> Slices[_Selection]:
    """Select nodes; an owner that still selects its node keeps it."""
    ordered = sorted(configs, key=_age)
    by_name = {config.metadata.name: config for config in ordered}
    all_nodes = sorted(nodes, key=lambda node: node.metadata.name)
    selected: dict[str, list[str]] = {}
    for config in ordered:
        selected[config.metadata.name] = [
            node.metadata.name
            for node in all_nodes
            if config.spec.node_selector is None
            or config.spec.node_selector.matches(node.metadata.labels)
        ]
        if pieces.fill_slice(1 + len(all_nodes) // QUICK_PER_PIECE):
            yield
    stored = {
        node: name
        for node, config in present.items()
        if (name := owner_name(config, by_name)) is not None
    }
    claims = {**owners, **stored}
    owned = {node: name for node, name in claims.items() if node in selected.get(name, ())}
    for config in ordered:
        for node in selected[config.metadata.name]:
            owned.setdefault(node, config.metadata.name)
    foreign = frozenset(
        node for node, config in present.items() if controller_of(config, CLUSTER_CONFIG) is None
    )
    return _Selection(ordered, selected, owned, foreign)


def _age(config: CiliumBGPClusterConfig) -> Age:
    ref = ObjectRef(CLUSTER_CONFIG, "", config.metadata.name)
    return age(config.metadata.creation_timestamp, ref)


def _conflicting(name: str, selection: _Selection) -> list[str]:
    """Return the other ClusterConfigs that own nodes which this one selects."""
    owners = {
        selection.owners[node] for node in selection.selected[name] if node not in selection.foreign
    }
    return sorted(owners - {name})


def _problems(name: str, others: Sequence[str], selection: _Selection) -> Iterator[Problem]:
    """Yield a problem for each NodeConfig of another writer, and one for nodes of other owners."""
    ref = ObjectRef(CLUSTER_CONFIG, "", name)
    selected = selection.selected[name]
    for node in selected:
        if node in selection.foreign:
            yield Problem(
                (ref, ObjectRef(NODE_CONFIG, "", node)),
                "metadata.name",
                f"the NodeConfig of node {node} is there already and is left as it is",
            )
    if others:
        shared = enumerate_some(
            [node for node in selected if selection.owners[node] in others], MAX_NAMES
        )
        yield Problem(
            (ref, *(ObjectRef(CLUSTER_CONFIG, "", other) for other in others)),
            "spec.nodeSelector",
            f"selects nodes that belong to another ClusterConfig: {shared}",
        )


def _missing_peer_configs(config: CiliumBGPClusterConfig, known: frozenset[str]) -> list[str]:
    return sorted(
        {
            peer.peer_config_ref.name
            for instance in config.spec.bgp_instances
            for peer in instance.peers
            if peer.peer_config_ref is not None and peer.peer_config_ref.name not in known
        }
    )


def owner_name(
    config: CiliumBGPNodeConfig, configs: Mapping[str, CiliumBGPClusterConfig]
) -> str | None:
    """Return the ClusterConfig that owns a NodeConfig; None if it does not exist any more.

    Compared by UID: after a ClusterConfig was deleted and created again under the same name, the API
    server is about to delete the NodeConfigs of the first one.
    """
    reference = controller_of(config, CLUSTER_CONFIG)
    if reference is None:
        return None
    owner = configs.get(reference.name)
    return None if owner is None or owner.metadata.uid != reference.uid else reference.name


def _conditions(
    config: CiliumBGPClusterConfig, matches: bool, missing: list[str], others: list[str]
) -> list[Condition]:
    ref = ObjectRef(CLUSTER_CONFIG, "", config.metadata.name)
    generation = config.metadata.generation or None
    no_node = "" if matches else "No node matches spec.nodeSelector"
    no_peer = f"Referenced CiliumBGPPeerConfig(s) are missing: [{' '.join(missing)}]"
    conflict = f"Selecting the same node(s) with ClusterConfig(s): [{' '.join(others)}]"
    return [
        Condition(
            ref,
            CONFLICTING_CLUSTER_CONFIG,
            bool(others),
            "ConflictingClusterConfigs",
            conflict if others else "",
            generation,
        ),
        Condition(
            ref,
            MISSING_PEER_CONFIGS,
            bool(missing),
            "MissingPeerConfigs",
            no_peer if missing else "",
            generation,
        ),
        Condition(ref, NO_MATCHING_NODE, not matches, "NoMatchingNode", no_node, generation),
    ]


def node_config(
    config: CiliumBGPClusterConfig, node: str, override: CiliumBGPNodeConfigOverride | None
) -> CiliumBGPNodeConfig:
    """Return a node's NodeConfig: the ClusterConfig's instances, with the override's fields."""
    overrides = {o.name: o for o in override.spec.bgp_instances} if override else {}
    instances = tuple(
        _instance(instance, overrides.get(instance.name)) for instance in config.spec.bgp_instances
    )
    owner = OwnerReference(
        api_version=API_VERSION,
        kind=CLUSTER_CONFIG,
        name=config.metadata.name,
        uid=config.metadata.uid,
        controller=True,
    )
    return CiliumBGPNodeConfig(
        metadata=ObjectMeta(name=node, owner_references=(owner,)),
        spec=NodeConfigSpec(bgp_instances=instances),
    )


def content(config: CiliumBGPNodeConfig) -> dict[str, Any]:
    """Return a generated NodeConfig as the JSON object to write."""
    row: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    return {"apiVersion": API_VERSION, "kind": NODE_CONFIG, **row}


def generated(result: NodeConfigs) -> list[Generated]:
    """Return the NodeConfigs as generated objects, each with the ClusterConfig that owns it."""
    return [
        Generated(
            ObjectRef(NODE_CONFIG, "", name),
            ObjectRef(CLUSTER_CONFIG, "", result.owners[name]),
            content(config),
        )
        for name, config in sorted(result.node_configs.items())
    ]


def _peer(peer: Peer, override: PeerOverride | None) -> NodePeer:
    interface = peer.peer_interface
    if override is not None and override.peer_interface is not None:
        interface = override.peer_interface
    return NodePeer(
        name=peer.name,
        peer_address=peer.peer_address,
        peer_asn=peer.peer_asn,
        auto_discovery=peer.auto_discovery,
        peer_interface=interface,
        local_address=None if override is None else override.local_address,
        peer_config_ref=peer.peer_config_ref,
    )


def _instance(instance: Instance, override: InstanceOverride | None) -> NodeInstance:
    peer_overrides = {p.name: p for p in override.peers} if override else {}
    peers = tuple(_peer(peer, peer_overrides.get(peer.name)) for peer in instance.peers)
    result = NodeInstance(
        name=instance.name,
        local_asn=instance.local_asn,
        local_port=instance.local_port,
        peers=peers,
    )
    if override is None:
        return result
    return replace(
        result,
        router_id=override.router_id,
        local_asn=override.local_asn if override.local_asn is not None else result.local_asn,
        local_port=override.local_port if override.local_port is not None else result.local_port,
    )


def _auth_secret_reason(name: str | None, missing: bool) -> str:
    if name is None:
        return "AuthSecretNotConfigured"
    return "AuthSecretMissing" if missing else "AuthSecretValidated"


def peer_config_conditions(
    configs: Iterable[CiliumBGPPeerConfig],
    secrets: Container[str],
    unread: Container[str] = frozenset(),
) -> list[Condition]:
    """Return the condition MissingAuthSecret of each CiliumBGPPeerConfig.

    ``secrets`` are the names of existing Secrets. Of a name in ``unread`` nothing is known: the
    condition stays as it is.
    """
    conditions = []
    for config in configs:
        name = config.spec.auth_secret_ref
        if name is not None and name in unread:
            continue
        missing = name is not None and name not in secrets
        conditions.append(
            Condition(
                ObjectRef(PEER_CONFIG, "", config.metadata.name),
                MISSING_AUTH_SECRET,
                missing,
                _auth_secret_reason(name, missing),
                f'Referenced Auth Secret "{name}" is missing' if missing else "",
                config.metadata.generation or None,
            )
        )
    return conditions
