"""Objects of the draft of BGPv2 in CFP-28175, converted to ``cilium.io/v2``.

Pure: JSON in, JSON and notes out. The draft identifies instances by AS number and peers by address,
which become their names here, as in the translation of v1 policies; an override by ``nodeRef`` becomes
the override of that name. What v2 has no place for is dropped, with a note. The result is validated by
its kind like any other object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reconcilers.cilium.v1.names import instance_name
from reconcilers.dialect import Notes
from reconcilers.model import ObjectRef

Json = dict[str, Any]

GROUP_VERSIONS: Final = ("cilium.io/v2alpha1", "cilium.io/v1alpha1")
V2: Final = "cilium.io/v2"
SERVICES: Final = ("CiliumLoadBalancerIPPool", "CiliumLoadBalancerIP")
"""The draft's types of advertisements for addresses of Services."""
TIMERS: Final = {
    "connectRetrySeconds": "connectRetryTimeSeconds",
    "keepaliveIntervalSeconds": "keepAliveTimeSeconds",
}


def convert_draft(value: Mapping[str, Any], notes: Notes) -> list[Json] | None:
    """Convert an object of the draft in CFP-28175 to ``cilium.io/v2``; None for other objects."""
    kind, spec = value.get("kind"), value.get("spec")
    if value.get("apiVersion") not in GROUP_VERSIONS or not isinstance(spec, Mapping):
        return None
    if not isinstance(kind, str) or kind not in _KINDS or not _IS_DRAFT[kind](value, spec):
        return None
    draft = _Draft(value, notes)
    wanted = _KINDS[kind](draft, dict(spec))
    converted = {"apiVersion": V2, "kind": kind, "metadata": draft.metadata(), "spec": wanted}
    if "status" in value:
        draft.note("status", "is not converted: the agent of the node writes it")
    return [converted]


class _Draft:
    """One object of the draft."""

    def __init__(self, value: Mapping[str, Any], notes: Notes) -> None:
        self._metadata = value.get("metadata")
        name = self._metadata.get("name") if isinstance(self._metadata, Mapping) else None
        self.ref = ObjectRef(str(value["kind"]), "", str(name or ""))
        self.node: str | None = None
        """The node of an override."""
        self._notes = notes

    def note(self, field: str, message: str) -> None:
        self._notes.add(self.ref, field, message)

    def metadata(self) -> Any:  # noqa: ANN401  JSON
        """Return the metadata with a name that Kubernetes accepts."""
        if not isinstance(self._metadata, Mapping):
            return self._metadata
        metadata = dict(self._metadata)
        if self.node is not None:
            metadata["name"] = self.node
        elif isinstance(metadata.get("name"), str):
            metadata["name"] = self.valid_name(metadata["name"], "metadata.name")
        return metadata

    def valid_name(self, name: str, field: str) -> str:
        valid = _object_name(name)
        if valid != name:
            self.note(field, f"{name!r} is no name of an object, {valid!r} is used")
        return valid


def _object_name(name: str) -> str:
    # Addresses of peers are parts of the draft's names: fd00:: ends in a colon.
    return (name + "0" if name.endswith(":") else name).replace(":", "-").lower()


def _mappings(value: object) -> list[Json]:
    """Return the mappings of a list; anything else stays for the validation of the result."""
    if not isinstance(value, list):
        return []
    return [dict(item) for item in value if isinstance(item, Mapping)]


def _is_any_unnamed(value: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether an instance or a peer has no name: v2 requires one of each."""
    del value
    instances = _mappings(spec.get("bgpInstances"))
    peers = [peer for instance in instances for peer in _mappings(instance.get("peers"))]
    return "nodeRef" in spec or any("name" not in item for item in (*instances, *peers))


def _is_draft_peer_config(value: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    del value
    timers = spec.get("timers")
    return (
        "gracefulRestartSeconds" in spec
        or (isinstance(timers, Mapping) and any(name in timers for name in TIMERS))
        or any("advertisement" in family for family in _mappings(spec.get("families")))
    )


def _is_draft_advertisement(value: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    entries = _mappings(spec.get("advertisements"))
    return (
        value["apiVersion"] == GROUP_VERSIONS[1]
        or "advertisementType" in spec
        or any(entry.get("advertisementType") in SERVICES for entry in entries)
        or any("community" in (entry.get("attributes") or {}) for entry in entries)
    )


def _named_instances(draft: _Draft, spec: Json) -> Json:
    """ClusterConfig, NodeConfig and override: name instances by AS number, peers by address."""
    instances = _mappings(spec.get("bgpInstances"))
    seen: set[object] = set()
    for index, instance in enumerate(instances):
        field = f"spec.bgpInstances[{index}]"
        asn = instance.get("localASN")
        if "name" not in instance and isinstance(asn, int):
            instance["name"] = instance_name(asn)
        if instance.get("name") in seen:
            draft.note(f"{field}.localASN", f"{asn} is used twice: an AS number names one instance")
        seen.add(instance.get("name"))
        if "peers" in instance:
            instance["peers"] = [
                _named_peer(draft, peer, f"{field}.peers[{place}]")
                for place, peer in enumerate(_mappings(instance["peers"]))
            ]
    return {**spec, "bgpInstances": [_first(item, "name") for item in instances]}


def _named_peer(draft: _Draft, peer: Json, field: str) -> Json:
    address = peer.get("peerAddress")
    if "name" not in peer and isinstance(address, str):
        peer["name"] = address
    ref = peer.get("peerConfigRef")
    if isinstance(ref, Mapping) and isinstance(ref.get("name"), str):
        name = draft.valid_name(ref["name"], f"{field}.peerConfigRef.name")
        peer["peerConfigRef"] = {**ref, "name": name}
    return _first(peer, "name")


def _first(item: Json, key: str) -> Json:
    return {key: item[key], **item} if key in item else item


def _override(draft: _Draft, spec: Json) -> Json:
    node = spec.pop("nodeRef", None)
    if isinstance(node, str) and node != draft.ref.name:
        draft.note("spec.nodeRef", f"an override has the name of its node: {node!r}")
        draft.node = node
    spec = _named_instances(draft, spec)
    for instance in spec["bgpInstances"]:
        # It identified the instance; in v2 it would set another AS number.
        instance.pop("localASN", None)
        for peer in instance.get("peers", ()):
            peer.pop("peerAddress", None)
    return spec


def _peer_config(draft: _Draft, spec: Json) -> Json:
    del draft
    timers = spec.get("timers")
    if isinstance(timers, Mapping):
        spec["timers"] = {TIMERS.get(name, name): value for name, value in timers.items()}
    if "gracefulRestartSeconds" in spec:
        seconds = spec.pop("gracefulRestartSeconds")
        restart: Json = {"enabled": bool(seconds)}
        if seconds:
            restart["restartTimeSeconds"] = seconds
        spec["gracefulRestart"] = restart
    if "families" in spec:
        spec["families"] = [
            {("advertisements" if key == "advertisement" else key): value
             for key, value in family.items()}
            for family in _mappings(spec["families"])
        ]  # fmt: skip
    return spec


def _advertisement(draft: _Draft, spec: Json) -> Json:
    if "advertisementType" in spec:
        entry = {key: spec.pop(key) for key in _ENTRY if key in spec}
        spec["advertisements"] = [entry]
    entries = _mappings(spec.get("advertisements"))
    return {**spec, "advertisements": [_entry(draft, e, i) for i, e in enumerate(entries)]}


_ENTRY: Final = ("advertisementType", "selector", "attributes")


def _entry(draft: _Draft, entry: Json, index: int) -> Json:
    field = f"spec.advertisements[{index}]"
    kind = entry.get("advertisementType")
    if kind in SERVICES:
        entry["advertisementType"] = "Service"
        entry["service"] = {"addresses": ["LoadBalancerIP"]}
        if kind == SERVICES[0] and entry.get("selector"):
            draft.note(
                f"{field}.selector",
                "selects Services by their labels in v2, and not pools: give the Services of the "
                "pools these labels",
            )
    if kind == "PodCIDR":
        if entry.pop("selector", None):
            draft.note(f"{field}.selector", "is not converted: PodCIDR has none in v2")
    else:
        # Without a selector the draft advertises everything of the type, and v2 nothing.
        entry["selector"] = entry.get("selector") or {}
    attributes = entry.get("attributes")
    if isinstance(attributes, Mapping):
        entry["attributes"] = {
            ("communities" if key == "community" else key): value
            for key, value in attributes.items()
        }
    return entry


_KINDS: Final = {
    "CiliumBGPClusterConfig": _named_instances,
    "CiliumBGPNodeConfig": _named_instances,
    "CiliumBGPNodeConfigOverride": _override,
    "CiliumBGPPeerConfig": _peer_config,
    "CiliumBGPAdvertisement": _advertisement,
}
_IS_DRAFT: Final = {
    "CiliumBGPClusterConfig": _is_any_unnamed,
    "CiliumBGPNodeConfig": _is_any_unnamed,
    "CiliumBGPNodeConfigOverride": _is_any_unnamed,
    "CiliumBGPPeerConfig": _is_draft_peer_config,
    "CiliumBGPAdvertisement": _is_draft_advertisement,
}
