"""What Cilium's operator does: a NodeConfig for each selected node, and conditions.

Pure: rows in, rows out. A node belongs to one ClusterConfig: the one that has it keeps it, a new node
goes to the oldest one that selects it (by creationTimestamp, then name), and the later ones get the
condition. Who has a node is in the NodeConfig's owner reference where there is an API server. A missing
PeerConfig stops nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.model import Condition, Generated, ObjectRef, Problem
from resources.cilium.clusterconfig import CiliumBGPClusterConfig, Instance
from resources.cilium.condition_types import (
    CONFLICTING_CLUSTER_CONFIG,
    MISSING_AUTH_SECRET,
    MISSING_PEER_CONFIGS,
    NO_MATCHING_NODE,
)
from resources.cilium.nodeconfig import CiliumBGPNodeConfig, NodeConfigSpec, NodeInstance, NodePeer
from resources.cilium.nodeconfigoverride import CiliumBGPNodeConfigOverride, InstanceOverride
from resources.cilium.peerconfig import CiliumBGPPeerConfig
from resources.core import Node, Secret
from resources.meta import ObjectMeta, OwnerReference

API_VERSION = "cilium.io/v2"
CLUSTER_CONFIG = "CiliumBGPClusterConfig"
PEER_CONFIG = "CiliumBGPPeerConfig"
NODE_CONFIG = "CiliumBGPNodeConfig"


class Operated(NamedTuple):
    """What the operator would write."""

    node_configs: dict[str, CiliumBGPNodeConfig]
    """By node."""
    owners: dict[str, str]
    """Node to ClusterConfig."""
    conditions: list[Condition]
    problems: list[Problem]


def _age(config: CiliumBGPClusterConfig) -> tuple[bool, str, str]:
    # One that says when it was made is older than one that does not.
    created = config.metadata.creation_timestamp
    return (not created, created, config.metadata.name)


SHOWN = 5
"""Nodes that one message names."""


def _some(names: Sequence[str]) -> str:
    """Name a few, and say how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def operate(
    configs: Iterable[CiliumBGPClusterConfig],
    nodes: Iterable[Node],
    overrides: Mapping[str, CiliumBGPNodeConfigOverride],
    peer_configs: Iterable[str],
    present: Mapping[str, CiliumBGPNodeConfig],
    owners: Mapping[str, str],
) -> Operated:
    """Generate NodeConfigs.

    ``present`` are the NodeConfigs that there are: one that no ClusterConfig owns was written by
    somebody else, and is left alone. ``owners`` tells which ClusterConfig had a node in the round
    before.
    """
    ordered = sorted(configs, key=_age)
    by_name = {config.metadata.name: config for config in ordered}
    foreign = {node for node, config in present.items() if controller(config) is None}
    owners = {
        **owners,
        **{
            node: name
            for node, config in present.items()
            if (name := owner_name(config, by_name)) is not None
        },
    }
    all_nodes = sorted(nodes, key=lambda node: node.metadata.name)
    known_peer_configs = frozenset(peer_configs)
    selected = {
        config.metadata.name: [
            node.metadata.name
            for node in all_nodes
            if config.spec.node_selector is None
            or config.spec.node_selector.matches(node.metadata.labels)
        ]
        for config in ordered
    }
    owned = {node: name for node, name in owners.items() if node in selected.get(name, ())}
    for config in ordered:
        for node in selected[config.metadata.name]:
            owned.setdefault(node, config.metadata.name)
    made: dict[str, CiliumBGPNodeConfig] = {}
    conditions: list[Condition] = []
    problems: list[Problem] = []
    for config in ordered:
        name = config.metadata.name
        ref = ObjectRef(CLUSTER_CONFIG, "", name)
        others: set[str] = set()
        for node in selected[name]:
            if node in foreign:
                problems.append(
                    Problem(
                        (ref, ObjectRef(NODE_CONFIG, "", node)),
                        "metadata.name",
                        f"the NodeConfig of node {node} is there already and is left as it is",
                    )
                )
            elif owned[node] == name:
                made[node] = node_config(config, node, overrides.get(node))
            else:
                others.add(owned[node])
        if others:
            shared = _some([node for node in selected[name] if owned[node] in others])
            problems.append(
                Problem(
                    (ref, *(ObjectRef(CLUSTER_CONFIG, "", other) for other in sorted(others))),
                    "spec.nodeSelector",
                    f"selects nodes that belong to another ClusterConfig: {shared}",
                )
            )
        missing = sorted(
            {
                peer.peer_config_ref.name
                for instance in config.spec.bgp_instances
                for peer in instance.peers
                if peer.peer_config_ref is not None
                and peer.peer_config_ref.name not in known_peer_configs
            }
        )
        conditions += _conditions(config, bool(selected[name]), missing, sorted(others))
    return Operated(made, {n: c for n, c in owned.items() if n in made}, conditions, problems)


def controller(config: CiliumBGPNodeConfig) -> OwnerReference | None:
    """Return the reference to the ClusterConfig that a NodeConfig belongs to, or None."""
    for owner in config.metadata.owner_references:
        group = owner.api_version.partition("/")[0]
        if owner.controller and owner.kind == CLUSTER_CONFIG and group == "cilium.io":
            return owner
    return None


def owner_name(
    config: CiliumBGPNodeConfig, configs: Mapping[str, CiliumBGPClusterConfig]
) -> str | None:
    """Return the ClusterConfig that a NodeConfig belongs to; None where there is none any more.

    Compared by UID: a ClusterConfig that was made anew under the same name is another one, whose
    predecessor's NodeConfigs the API server is about to delete.
    """
    reference = controller(config)
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
    no_peer = f"Referenced CiliumBGPPeerConfig(s) are missing: {', '.join(missing)}"
    conflict = f"Selects the same node(s) as CiliumBGPClusterConfig(s): {', '.join(others)}"
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
    """Make one node's configuration: the cluster's, with what the override sets."""
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
    """Return a NodeConfig as it is written."""
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    return {"apiVersion": API_VERSION, "kind": NODE_CONFIG, **made}


def generated(operated: Operated) -> list[Generated]:
    """Return the NodeConfigs as objects to write, each with the ClusterConfig that owns it."""
    return [
        Generated(
            ObjectRef(NODE_CONFIG, "", name),
            ObjectRef(CLUSTER_CONFIG, "", operated.owners[name]),
            content(config),
        )
        for name, config in sorted(operated.node_configs.items())
    ]


def _instance(instance: Instance, override: InstanceOverride | None) -> NodeInstance:
    peer_overrides = {p.name: p for p in override.peers} if override else {}
    peers = tuple(
        NodePeer(
            name=peer.name,
            peer_address=peer.peer_address,
            peer_asn=peer.peer_asn,
            auto_discovery=peer.auto_discovery,
            local_address=(
                peer_overrides[peer.name].local_address if peer.name in peer_overrides else None
            ),
            peer_config_ref=peer.peer_config_ref,
        )
        for peer in instance.peers
    )
    made = NodeInstance(
        name=instance.name,
        local_asn=instance.local_asn,
        local_port=instance.local_port,
        peers=peers,
    )
    if override is None:
        return made
    return replace(
        made,
        router_id=override.router_id,
        local_asn=override.local_asn if override.local_asn is not None else made.local_asn,
        local_port=override.local_port if override.local_port is not None else made.local_port,
    )


def peer_config_conditions(
    configs: Iterable[CiliumBGPPeerConfig], secrets: Mapping[str, Secret]
) -> list[Condition]:
    """Tell of each PeerConfig whether its Secret is missing; ``secrets`` by name."""
    found = []
    for config in configs:
        name = config.spec.auth_secret_ref
        missing = name is not None and name not in secrets
        found.append(
            Condition(
                ObjectRef(PEER_CONFIG, "", config.metadata.name),
                MISSING_AUTH_SECRET,
                missing,
                "MissingAuthSecret",
                f"Referenced Auth Secret is missing: {name}" if missing else "",
                config.metadata.generation or None,
            )
        )
    return found
