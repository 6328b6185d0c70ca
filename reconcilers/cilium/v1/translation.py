"""Translates CiliumBGPPeeringPolicies to the equivalent objects of v2, as CFP-28175 proposes.

Pure. One ClusterConfig per policy, one PeerConfig per neighbor, one Advertisement per virtual router
and one per neighbor with attributes of its own, and overrides for the annotations of Nodes. What v2
cannot express is dropped, with a note. Instances and peers have the names that `compile_node` gives
them, so that the migration of a node resets no session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.cilium.sessions import FAMILIES
from reconcilers.cilium.v1 import names
from reconcilers.cilium.v1.annotations import AnnotationError, router_settings
from reconcilers.cilium.v1.in_effect import policy_ref
from reconcilers.model import ObjectRef, Problem
from resources.cilium import (
    CiliumBGPAdvertisement,
    CiliumBGPClusterConfig,
    CiliumBGPNodeConfigOverride,
    CiliumBGPPeerConfig,
    CiliumBGPPeeringPolicy,
    CiliumLoadBalancerIPPool,
)
from resources.cilium.advertisement import (
    Advertisement,
    AdvertisementAttributes,
    AdvertisementSpec,
    Communities,
    ServiceOptions,
)
from resources.cilium.clusterconfig import ClusterConfigSpec, Instance, Peer, PeerConfigReference
from resources.cilium.nodeconfigoverride import InstanceOverride, NodeConfigOverrideSpec
from resources.cilium.peerconfig import PeerConfigSpec, PeerFamily, Timers, Transport
from resources.cilium.peeringpolicy import Neighbor, PathAttributes, VirtualRouter
from resources.core import Node
from resources.empty_parts import without_empty
from resources.label_selectors import LabelSelector
from resources.meta import ObjectMeta, Resource

MAX_INSTANCES = 16
"""Of a ClusterConfig."""
OVERRIDE = "CiliumBGPNodeConfigOverride"
_OMITTED_IF_EMPTY = frozenset({"transport", "timers", "attributes", "communities"})
"""Parts that mean the same empty and absent."""
LOAD_BALANCER: tuple[Any, ...] = ("LoadBalancerIP",)


class Translated(NamedTuple):
    """The objects of v2, and what they cannot express."""

    peer_configs: list[CiliumBGPPeerConfig]
    advertisements: list[CiliumBGPAdvertisement]
    cluster_configs: list[CiliumBGPClusterConfig]
    overrides: list[CiliumBGPNodeConfigOverride]
    notes: list[Problem]
    origins: dict[ObjectRef, ObjectRef]
    """The policy that each object is translated from; of several, the first one."""

    @property
    def objects(self) -> list[Resource]:
        """All objects translated to v2; applied in this order they reset no session."""
        return [
            *self.peer_configs,
            *self.advertisements,
            *self.overrides,
            *self.cluster_configs,
        ]


class ClusterView(NamedTuple):
    """The nodes and pools of the cluster; without them some attributes cannot be translated."""

    nodes: tuple[Node, ...]
    load_balancer_pools: tuple[CiliumLoadBalancerIPPool, ...]


def translate(policies: Iterable[CiliumBGPPeeringPolicy], view: ClusterView) -> Translated:
    """Translate CiliumBGPPeeringPolicies to objects of v2, in the order of their names."""
    translated = Translated([], [], [], [], [], {})
    settings: dict[str, dict[str, InstanceOverride]] = {}
    lists: tuple[Sequence[Resource], ...] = (
        translated.peer_configs,
        translated.advertisements,
        translated.cluster_configs,
    )
    for policy in sorted(policies, key=lambda p: p.metadata.name):
        nodes = [node for node in view.nodes if _selects(policy.spec.node_selector, node)]
        before = [len(rows) for rows in lists]
        overridden = len(settings)
        _PolicyTranslation(policy, nodes, view, translated, settings).translate()
        new = [object_ref(row) for rows, n in zip(lists, before, strict=True) for row in rows[n:]]
        new += [ObjectRef(OVERRIDE, "", name) for name in islice(settings, overridden, None)]
        origin = policy_ref(policy.metadata.name)
        for ref in new:
            translated.origins.setdefault(ref, origin)
    translated.overrides.extend(
        _override(name, setting) for name, setting in sorted(settings.items())
    )
    return translated


def merged(
    written: CiliumBGPNodeConfigOverride | None, translated: CiliumBGPNodeConfigOverride
) -> CiliumBGPNodeConfigOverride:
    """Return a user's NodeConfigOverride with the instances that it lacks of a translated policy."""
    if written is None:
        return translated
    present = {instance.name for instance in written.spec.bgp_instances}
    added = [i for i in translated.spec.bgp_instances if i.name not in present]
    instances = (*written.spec.bgp_instances, *added)
    return replace(written, spec=NodeConfigOverrideSpec(bgp_instances=instances))


def _override(name: str, instances: Mapping[str, InstanceOverride]) -> CiliumBGPNodeConfigOverride:
    return CiliumBGPNodeConfigOverride(
        metadata=ObjectMeta(name=name),
        spec=NodeConfigOverrideSpec(bgp_instances=tuple(instances.values())),
    )


def object_ref(row: Resource) -> ObjectRef:
    """Return the reference of a translated object of v2."""
    return ObjectRef(type(row).__name__, "", row.metadata.name)


def as_object(row: Resource) -> dict[str, Any]:
    """Return a translated row as a JSON object of v2."""
    content: dict[str, Any] = without_empty(msgspec.to_builtins(row), _OMITTED_IF_EMPTY)
    return {"apiVersion": "cilium.io/v2", "kind": type(row).__name__, **content}


def _selects(selector: LabelSelector | None, node: Node) -> bool:
    return selector is None or selector.matches(node.metadata.labels)


def _empty(selector: LabelSelector | None) -> bool:
    return selector is None or not (selector.match_labels or selector.match_expressions)


def _implies(selector: LabelSelector | None, other: LabelSelector) -> bool:
    """True if a selector has all requirements of another selector."""
    return (
        selector is not None
        and other.match_labels.items() <= selector.match_labels.items()
        and all(e in selector.match_expressions for e in other.match_expressions)
    )


class _PolicyTranslation:
    """The translation of one policy."""

    def __init__(
        self,
        policy: CiliumBGPPeeringPolicy,
        nodes: list[Node],
        view: ClusterView,
        translated: Translated,
        settings: dict[str, dict[str, InstanceOverride]],
    ) -> None:
        self._name = policy.metadata.name
        self._policy = policy
        self._nodes = nodes
        self._view = view
        self._translated = translated
        self._settings = settings
        self._notes: set[Problem] = set()

    def _note(self, field: str, message: str, *others: ObjectRef) -> None:
        note = Problem((policy_ref(self._name), *others), field, message)
        if note not in self._notes:
            self._notes.add(note)
            self._translated.notes.append(note)

    def translate(self) -> None:
        instances: list[Instance] = []
        for i, router in enumerate(self._policy.spec.virtual_routers):
            path = f"spec.virtualRouters[{i}]"
            if router.local_asn == 0:
                self._note(f"{path}.localASN", "not translated: 0 is no AS number (RFC 7607)")
            elif len(instances) == MAX_INSTANCES:
                self._note(path, f"not translated: v2 has at most {MAX_INSTANCES} instances")
            else:
                instances.append(self._router(path, router))
                self._overrides(router.local_asn)
        if not instances:
            return
        meta = self._policy.metadata
        self._translated.cluster_configs.append(
            CiliumBGPClusterConfig(
                # The policy's age: of several ClusterConfigs the oldest owns a node.
                metadata=ObjectMeta(
                    name=names.cluster_config_name(self._name),
                    creation_timestamp=meta.creation_timestamp,
                ),
                spec=ClusterConfigSpec(
                    node_selector=self._policy.spec.node_selector, bgp_instances=tuple(instances)
                ),
            )
        )

    def _overrides(self, asn: int) -> None:
        for node in self._nodes:
            ref = ObjectRef("Node", "", node.metadata.name)
            try:
                router = router_settings(node.metadata.annotations, asn)
            except AnnotationError as error:
                self._note("", f"no override for node {node.metadata.name}: {error}", ref)
                continue
            if router.router_id is not None or router.local_port is not None:
                name = names.instance_name(asn)
                self._settings.setdefault(node.metadata.name, {})[name] = InstanceOverride(
                    name=name, router_id=router.router_id, local_port=router.local_port
                )

    def _router(self, path: str, router: VirtualRouter) -> Instance:
        asn = router.local_asn
        shared = self._entries(path, router, ())
        shared_name = names.advertisement_name(self._name, asn)
        is_shared_used = False
        peers: dict[str, Peer] = {}
        for j, neighbor in enumerate(router.neighbors):
            where = f"{path}.neighbors[{j}]"
            address = neighbor.address
            if address in peers:
                text = f"not translated: {address} is listed twice; the first entry is used"
                self._note(f"{where}.peerAddress", text)
                continue
            own = self._entries(where, router, neighbor.advertised_path_attributes)
            label = None
            if own == shared:
                label = shared_name if shared else None
                is_shared_used = is_shared_used or bool(shared)
            else:
                label = names.advertisement_name(self._name, asn, address)
                self._advertise(label, own)
            config = names.peer_config_name(self._name, asn, address)
            self._translated.peer_configs.append(_peer_config(config, neighbor, label))
            peers[address] = Peer(
                name=address,
                peer_address=address,
                peer_asn=neighbor.peer_asn,
                peer_config_ref=PeerConfigReference(name=config),
            )
        if is_shared_used:
            self._advertise(shared_name, shared)
        return Instance(name=names.instance_name(asn), local_asn=asn, peers=tuple(peers.values()))

    def _advertise(self, name: str, entries: tuple[Advertisement, ...]) -> None:
        self._translated.advertisements.append(
            CiliumBGPAdvertisement(
                metadata=ObjectMeta(name=name, labels={names.LABEL: name}),
                spec=AdvertisementSpec(advertisements=entries),
            )
        )

    def _entries(
        self, path: str, router: VirtualRouter, given: tuple[PathAttributes, ...]
    ) -> tuple[Advertisement, ...]:
        """Translate what is advertised to one neighbor; ``given`` are its attributes."""
        entries: list[Advertisement] = []
        if router.export_pod_cidr:
            selected = [
                attributes
                for i, attributes in enumerate(given)
                if attributes.selector_type == "PodCIDR"
                and self._always_selected(f"{path}.advertisedPathAttributes[{i}]", attributes)
            ]
            entries.append(
                Advertisement(advertisement_type="PodCIDR", attributes=_joined(selected))
            )
        if router.service_selector is not None:
            self._note(
                path.partition(".neighbors")[0] + ".serviceSelector",
                "v1 advertises no Service without an endpoint, v2 does with traffic policy "
                "Cluster unless enable-no-service-endpoints-routable is false",
            )
            entries += self._services(path, router, router.service_selector, given)
        if router.pod_ip_pool_selector is not None:
            plain = Advertisement(
                advertisement_type="CiliumPodIPPool", selector=router.pod_ip_pool_selector
            )
            entries.append(plain)
            for attributes in given:
                if attributes.selector_type == "CiliumPodIPPool":
                    selector = router.pod_ip_pool_selector
                    if not _empty(attributes.selector):
                        selector = selector.both(attributes.selector or LabelSelector())
                    entry = replace(plain, selector=selector, attributes=_joined([attributes]))
                    entries.append(entry)
        return tuple(entries)

    def _services(
        self,
        path: str,
        router: VirtualRouter,
        selector: LabelSelector,
        given: tuple[PathAttributes, ...],
    ) -> list[Advertisement]:
        selected = [
            attributes
            for i, attributes in enumerate(given)
            if attributes.selector_type == "CiliumLoadBalancerIPPool"
            and self._all_pools(f"{path}.advertisedPathAttributes[{i}]", attributes)
        ]
        addresses = tuple(dict.fromkeys(router.service_addresses))
        plain = Advertisement(
            advertisement_type="Service",
            service=ServiceOptions(addresses=addresses),
            selector=selector,
        )
        if not selected or "LoadBalancerIP" not in addresses:
            return [plain]
        others = tuple(address for address in addresses if address != "LoadBalancerIP")
        entries = [
            replace(
                plain, service=ServiceOptions(addresses=LOAD_BALANCER), attributes=_joined(selected)
            )
        ]
        if others:
            entries.append(replace(plain, service=ServiceOptions(addresses=others)))
        return entries

    def _always_selected(self, path: str, attributes: PathAttributes) -> bool:
        """True if attributes of pod CIDRs apply to every node of the policy; otherwise adds a note."""
        selector = attributes.selector
        if selector is None or _empty(selector):
            return True
        if _implies(self._policy.spec.node_selector, selector):
            return True
        matches = {_selects(selector, node) for node in self._nodes}
        if len(matches) == 1:
            return matches.pop()
        which = (
            "selects some of the policy's nodes" if matches else "the policy's nodes are not given"
        )
        self._note(
            f"{path}.selector",
            f"these attributes are not translated: v2's PodCIDR has no selector, and {which}",
        )
        return False

    def _all_pools(self, path: str, attributes: PathAttributes) -> bool:
        """True if attributes apply to all pools; adds a note if they apply to some."""
        selector = attributes.selector
        pools = [p for p in self._view.load_balancer_pools if not p.spec.disabled]
        matches = {selector is None or selector.matches(p.metadata.labels) for p in pools}
        if not _empty(selector) and matches != {True}:
            if matches != {False}:
                which = "selects some of the pools" if matches else "the pools are not given"
                self._note(
                    f"{path}.selector",
                    f"these attributes are not translated: v2 selects Services, not pools, and {which}",
                )
            return False
        self._note(
            path,
            "these attributes are for addresses of the pools in v1, and for every "
            "LoadBalancerIP in v2",
        )
        return True


def _joined(given: list[PathAttributes]) -> AdvertisementAttributes:
    """Join attributes by the rule for a prefix of several origins."""
    preferences = [a.local_preference for a in given if a.local_preference is not None]
    return AdvertisementAttributes(
        communities=Communities(
            standard=tuple(dict.fromkeys(c for a in given for c in a.communities.standard)),
            well_known=tuple(dict.fromkeys(c for a in given for c in a.communities.well_known)),
            large=tuple(dict.fromkeys(c for a in given for c in a.communities.large)),
        ),
        local_preference=max(preferences, default=None),
    )


def _peer_config(name: str, neighbor: Neighbor, label: str | None) -> CiliumBGPPeerConfig:
    selector = LabelSelector(match_labels={names.LABEL: label}) if label is not None else None
    families = dict.fromkeys((f.afi, f.safi) for f in neighbor.chosen_families)
    return CiliumBGPPeerConfig(
        metadata=ObjectMeta(name=name),
        spec=PeerConfigSpec(
            transport=Transport(peer_port=neighbor.peer_port),
            timers=Timers(
                connect_retry_time_seconds=neighbor.connect_retry_time_seconds,
                hold_time_seconds=neighbor.hold_time_seconds,
                keep_alive_time_seconds=neighbor.keep_alive_time_seconds,
            ),
            auth_secret_ref=neighbor.auth_secret_ref,
            graceful_restart=neighbor.graceful_restart,
            ebgp_multihop=neighbor.ebgp_multihop_ttl,
            families=tuple(
                PeerFamily(
                    afi=afi,
                    safi=safi,
                    advertisements=selector if (afi, safi) in FAMILIES else None,
                )
                for afi, safi in families
            ),
        ),
    )
