"""Whether an object can be the rule of an obstacle: by its manifest, and by what the reason says of it.

The rule of a missing route is of the route's peer. A rule with a reason behind its selector (an address
type, an endpoint) selects the object; a rule with the reason NotSelected does not.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reconcilers.model import ObjectRef, Peer, RouteExplanation
from speaker.nlri import prefix_to_text

Document = dict[str, Any]

ADVERTISED_BY: Final[Mapping[str, str]] = {
    "PodCIDR": "PodCIDR",
    "CiliumPodIPPool": "CiliumPodIPPool",
    "Interface": "Interface",
}
"""The type of Cilium's advertisement by that of the address; the others are of Services."""
OF_BOTH: Final = frozenset({"CiliumBGPPeeringPolicy", "BGPPolicy", "FRRConfiguration"})
"""Kinds that give nodes peers, and select what these are advertised."""
OF_PEER: Final = frozenset(
    {"Family", "FamilyNotConfigured", "NotInAllowList", "NoAdvertisements", "NoPeerConfig"}
)
"""Reasons of the peer, whatever the object."""


class Obstacles:
    """The manifests of a step, and the labels of its node."""

    def __init__(self, present: Sequence[Document], node: str) -> None:
        self._present = present
        self._node = node
        (self._node_labels,) = [
            metadata.get("labels") or {} for metadata in self._metadata("Node", "", node)
        ] or [{}]

    def can_be(self, verdict: RouteExplanation, peer: Peer | None) -> bool:
        """Whether the rule of a verdict can stand in the way of its route, by the manifests."""
        rule = verdict.rule
        assert rule is not None
        if rule.kind == "Node":
            return rule.name == self._node
        if peer is None:
            return True  # nothing gives the node a peer: the sentence names the nearest
        if verdict.reason == "LocalPreferenceConflict" and not verdict.message.startswith(
            f"{rule.name} "
        ):
            return False
        written = [*self._documents(rule)]
        if verdict.reason in OF_PEER:
            if verdict.reason == "NoAdvertisements" and rule.kind == "CiliumBGPPeerConfig":
                return rule.name in self._peer_configs(peer)
            return rule == peer.origins[0]
        if rule.kind in OF_BOTH:
            is_for_others = verdict.reason == "NotSelected" and rule == verdict.object
            return is_for_others or rule in peer.origins
        if not written:
            return True  # generated of a policy, for the compiler alone
        if rule.kind == "CiliumBGPAdvertisement":
            return any(self._is_cilium(verdict, peer, item) for item in written)
        if rule.kind == "BGPAdvertisement":
            return any(self._is_metallb(verdict, item) for item in written)
        return False

    # Cilium

    def _is_cilium(self, verdict: RouteExplanation, peer: Peer, item: Document) -> bool:
        """Whether a CiliumBGPAdvertisement is one of the peer, and fails by what the reason says."""
        labels = item["metadata"].get("labels") or {}
        if not any(
            selects(family.get("advertisements"), labels)
            for name in self._peer_configs(peer)
            for config in self._documents(ObjectRef("CiliumBGPPeerConfig", "", name))
            for family in config["spec"].get("families") or ()
            if verdict.family is None or str(verdict.family).startswith(family["afi"])
        ):
            return False
        wanted = ADVERTISED_BY.get(verdict.type, "Service")
        entries = [
            entry
            for entry in item["spec"]["advertisements"]
            if entry["advertisementType"] == wanted
        ]
        if wanted == "PodCIDR" or verdict.reason == "NoPool":
            return bool(entries)
        if verdict.reason == "NoSelector":
            return any(entry.get("selector") is None for entry in entries)
        selecting = [entry for entry in entries if self._selects_object(verdict, entry)]
        if verdict.reason == "NotSelected":
            return bool(entries) and not selecting
        if wanted != "Service":
            return bool(selecting)
        has_type = {
            verdict.type in (entry.get("service") or {}).get("addresses", ()) for entry in selecting
        }
        return False in has_type if verdict.reason == "AddressType" else True in has_type

    def _selects_object(self, verdict: RouteExplanation, entry: Document) -> bool:
        ref = verdict.object
        assert ref is not None
        if verdict.type == "Interface":
            return bool(entry["interface"]["name"] == ref.name)
        return any(selects(entry.get("selector"), labels) for labels in self._labels_of(ref))

    def _labels_of(self, ref: ObjectRef) -> Iterator[dict[str, str]]:
        """Yield the labels by which Cilium's selectors know an object."""
        group = {"Service": "io.kubernetes.service", "CiliumPodIPPool": "io.cilium.podippool"}
        for metadata in self._metadata(ref.kind, ref.namespace, ref.name):
            own = metadata.get("labels") or {}
            prefix = group.get(ref.kind, "")
            yield own | {f"{prefix}.name": ref.name, f"{prefix}.namespace": ref.namespace}

    def _peer_configs(self, peer: Peer) -> set[str]:
        """Return the names of the CiliumBGPPeerConfigs to which peers of this name refer."""
        return {
            part["peerConfigRef"]["name"]
            for item in self._present
            for part in _mappings(item)
            if part.get("name") == peer.name and part.get("peerConfigRef")
        }

    # MetalLB

    def _is_metallb(self, verdict: RouteExplanation, item: Document) -> bool:
        """Whether a BGPAdvertisement is of the address's pool, and fails by what the reason says."""
        spec = item.get("spec") or {}
        if verdict.reason != "NotOwner" and not _any_selects(
            spec.get("nodeSelectors"), self._node_labels
        ):
            return False
        ref = verdict.object
        assert ref is not None
        labels = [m.get("labels") or {} for m in self._metadata("Service", ref.namespace, ref.name)]
        if any(_any_selects(spec.get("serviceSelectors"), own) for own in labels) is (
            verdict.reason == "NoMatchingAdvertisement"
        ):
            return False
        if verdict.family is None or verdict.nlri is None:
            return True
        address = ipaddress.ip_network(prefix_to_text(verdict.family, verdict.nlri))[0]
        return any(
            _is_of_pool(spec, pool["metadata"])
            for pool in self._present
            if pool["kind"] == "IPAddressPool"
            and any(_has(text, address) for text in pool["spec"]["addresses"])
        )

    # Manifests

    def _documents(self, ref: ObjectRef) -> Iterator[Document]:
        for item in self._present:
            metadata = item["metadata"]
            if (item["kind"], metadata.get("namespace") or "", metadata.get("name")) == (
                ref.kind,
                ref.namespace,
                ref.name,
            ):
                yield item

    def _metadata(self, kind: str, namespace: str, name: str) -> Iterator[Document]:
        for item in self._documents(ObjectRef(kind, namespace, name)):
            yield item["metadata"]


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector of a manifest selects labels; without one nothing is selected."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], expression.get("values") or ()
        is_met = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }[expression["operator"]]
        if not is_met:
            return False
    return True


def _any_selects(selectors: Sequence[Document] | None, labels: Mapping[str, str]) -> bool:
    """Whether one of several selectors selects labels; without any all are selected."""
    return not selectors or any(selects(selector, labels) for selector in selectors)


def _is_of_pool(spec: Document, pool: Document) -> bool:
    names, selectors = spec.get("ipAddressPools") or (), spec.get("ipAddressPoolSelectors") or ()
    if not names and not selectors:
        return True
    labels = pool.get("labels") or {}
    return pool["name"] in names or any(selects(selector, labels) for selector in selectors)


def _has(text: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether a range of a pool, a network or its first and last address, has an address."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not dash:
        return address in ipaddress.ip_network(first)
    low, high = ipaddress.ip_address(first), ipaddress.ip_address(last)
    return address.version == low.version and int(low) <= int(address) <= int(high)


def _mappings(value: object) -> Iterator[Document]:
    """Yield each mapping of a document."""
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _mappings(part)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for part in value:
            yield from _mappings(part)
