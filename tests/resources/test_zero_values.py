"""Empty and zero values of optional fields, in every dialect: they mean what an absent field means.

Templates write them, and an API server stores what the definition accepts. The exceptions have reasons:
the originals' code reads them so.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from reconcilers.compile_manifests import CompiledManifests, kinds_of
from resources.crds.generate import custom_resource_definition
from resources.manifests.load import load
from tests.support.scenario import offline_settings
from waggle.dialects import DIALECTS

Json = dict[str, Any]
Path_ = tuple[str | int, ...]

TYPES: Final = [entry.load() for entry in DIALECTS]
KINDS: Final = kinds_of(TYPES)
ZERO: Final[dict[str, Any]] = {
    "string": "",
    "integer": 0,
    "boolean": False,
    "array": [],
    "object": {},
}
NODE: Final[Json] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"rack": "1"}},
    "spec": {"podCIDRs": ["10.244.1.0/24"]},
    "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
}


def made(version: str, kind: str, spec: Json, namespace: str = "", **metadata: Any) -> Json:  # noqa: ANN401
    named = {"name": "x", **({"namespace": namespace} if namespace else {}), **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": named, "spec": spec}


def frr(neighbor: Json) -> Json:
    router = {"asn": 64900, "prefixes": ["198.51.100.0/24"], "neighbors": [neighbor]}
    spec = {"bgp": {"routers": [router]}}
    return made("frrk8s.metallb.io/v1beta1", "FRRConfiguration", spec, "frr-k8s-system")


def metallb(kind: str, spec: Json, version: str = "v1beta1") -> Json:
    return made(f"metallb.io/{version}", kind, spec, "metallb-system")


CLUSTER_CONFIG: Final = made(
    "cilium.io/v2",
    "CiliumBGPClusterConfig",
    {
        "bgpInstances": [
            {
                "name": "i",
                "localASN": 65001,
                "peers": [
                    {
                        "name": "p",
                        "peerASN": 65002,
                        "peerAddress": "203.0.113.9",
                        "peerConfigRef": {"name": "x"},
                    }
                ],
            }
        ]
    },
)
PEER_CONFIG: Final = made(
    "cilium.io/v2",
    "CiliumBGPPeerConfig",
    {
        "families": [
            {"afi": "ipv4", "safi": "unicast", "advertisements": {"matchLabels": {"a": "b"}}}
        ]
    },
)
ADVERTISEMENT: Final = made(
    "cilium.io/v2",
    "CiliumBGPAdvertisement",
    {"advertisements": [{"advertisementType": "PodCIDR"}]},
    labels={"a": "b"},
)
OVERRIDE: Final = made(
    "cilium.io/v2",
    "CiliumBGPNodeConfigOverride",
    {"bgpInstances": [{"name": "i", "peers": [{"name": "p"}]}]},
    name="n1",
)
POLICY: Final = made(
    "cilium.io/v2alpha1",
    "CiliumBGPPeeringPolicy",
    {
        "virtualRouters": [
            {
                "localASN": 65001,
                "exportPodCIDR": True,
                "neighbors": [{"peerAddress": "203.0.113.9/32", "peerASN": 65002}],
            }
        ]
    },
)
ANTREA: Final = made(
    "crd.antrea.io/v1alpha1",
    "BGPPolicy",
    {
        "nodeSelector": {},
        "localASN": 64512,
        "advertisements": {"pod": {}},
        "bgpPeers": [{"address": "203.0.113.9", "asn": 65002}],
    },
)
SPECIMENS: Final[dict[str, list[Json]]] = {
    "FRRConfiguration": [frr({"address": "203.0.113.9", "asn": 64950})],
    "FRRConfiguration by interface": [frr({"interface": "eth0", "dynamicASN": "external"})],
    "BGPPeer": [
        metallb(
            "BGPPeer", {"myASN": 64900, "peerASN": 64950, "peerAddress": "203.0.113.9"}, "v1beta2"
        )
    ],
    "BGPPeer by interface": [
        metallb("BGPPeer", {"myASN": 64900, "peerASN": 64950, "interface": "eth0"}, "v1beta2")
    ],
    "BGPAdvertisement": [metallb("BGPAdvertisement", {})],
    "IPAddressPool": [metallb("IPAddressPool", {"addresses": ["198.51.100.0/24"]})],
    "BFDProfile": [metallb("BFDProfile", {})],
    "CiliumBGPClusterConfig": [CLUSTER_CONFIG, PEER_CONFIG, ADVERTISEMENT],
    "CiliumBGPPeerConfig": [PEER_CONFIG, CLUSTER_CONFIG, ADVERTISEMENT],
    "CiliumBGPAdvertisement": [ADVERTISEMENT, CLUSTER_CONFIG, PEER_CONFIG],
    "CiliumBGPNodeConfigOverride": [OVERRIDE, CLUSTER_CONFIG, PEER_CONFIG, ADVERTISEMENT],
    "CiliumBGPPeeringPolicy": [POLICY],
    "BGPPolicy": [ANTREA],
}
"""By name: the object whose fields are set, and what it needs."""
REFUSING: Final = frozenset({"ipv4", "ipv6", "cidr", "date-time", "duration"})
"""Formats of texts that are not empty."""
EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    ("FRRConfiguration", "neighbors.port"): "FRR-k8s connects to port 0, which no router has",
    ("FRRConfiguration", "holdTime"): "no Go program decodes an empty duration",
    ("FRRConfiguration", "keepaliveTime"): "likewise",
    ("FRRConfiguration", "withCommunity.community"): "FRR-k8s refuses an empty community",
    ("FRRConfiguration", "prefixes.prefix"): "FRR-k8s refuses an empty prefix",
    ("FRRConfiguration", "imports"): "an import of the own VRF",
    ("FRRConfiguration", "evpn"): "an object that is given has an effect in FRR",
    ("FRRConfiguration", "localPref"): "0 is a local preference, of a prefix that is not there",
    ("FRRConfiguration", "withLocalPref"): "an entry without prefixes",
    ("FRRConfiguration", "withCommunity"): "an entry without prefixes",
    ("BGPPeer", "holdTime"): "no Go program decodes an empty duration",
    ("BGPPeer", "keepaliveTime"): "likewise",
    ("CiliumBGPAdvertisement", "localPreference"): "0 is a local preference",
    ("CiliumBGPAdvertisement", "selector"): "a rule of the definition refuses it for a PodCIDR",
    ("CiliumBGPPeerConfig", "families"): "nothing is advertised without families",
    ("CiliumBGPPeerConfig", "advertisements"): "an empty selector selects all",
    ("CiliumBGPPeerConfig", "bfd"): "BFD is reported unless it is disabled",
    ("CiliumBGPPeeringPolicy", "exportPodCIDR"): "false exports none",
    ("CiliumBGPPeeringPolicy", "podIPPoolSelector"): "an empty selector selects all",
    ("CiliumBGPPeeringPolicy", "serviceSelector"): "an empty selector selects all",
    ("BGPPolicy", "confederation"): "Antrea's identifier 0 is accepted by no peer",
    ("BGPPolicy", "gracefulRestartEnabled"): "false disables it",
    ("BGPPolicy", "advertisements"): "nothing is advertised without it",
}
"""By kind and the end of the field's path."""


def fields(schema: Json, path: Path_ = ()) -> Iterator[tuple[Path_, Json]]:
    """Yield each optional field of a schema, by its path; lists have one item."""
    for name, part in schema.get("properties", {}).items():
        if name not in schema.get("required", ()):
            yield (*path, name), part
        if part.get("type") == "object":
            yield from fields(part, (*path, name))
        elif part.get("type") == "array" and part["items"].get("type") == "object":
            yield from fields(part["items"], (*path, name, 0))


def accepts(schema: Json, value: Any) -> bool:  # noqa: ANN401
    """True if an API server with the definition stores the value."""
    parts = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if any(part.get("format") in REFUSING or "pattern" in part for part in parts):
        pattern = schema.get("pattern")
        return len(parts) == 1 and pattern is not None and re.search(pattern, value) is not None
    return (
        value in schema.get("enum", (value,))
        and not (isinstance(value, str) and schema.get("minLength", 0))
        and not (isinstance(value, int) and schema.get("minimum", 0) > 0)
        and not (isinstance(value, list) and schema.get("minItems", 0))
        and not (isinstance(value, dict) and schema.get("required"))
        and not schema.get("x-kubernetes-validations")
    )


def minimal(schema: Json) -> Any:  # noqa: ANN401
    """Return a value with the required fields alone."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            required = schema.get("required", ())
            return {name: minimal(schema["properties"][name]) for name in required}
        case "array":
            return [minimal(schema["items"])]
        case "integer":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
    return "x"


def placed(given: Json, schema: Json, path: Path_) -> tuple[Json, dict[str | int, Any]]:
    """Return a copy of an object that has the parents of a field, and the field's parent."""
    result = copy.deepcopy(given)
    at: Any = result
    for name, following in itertools.pairwise(path):
        if name == 0:
            at = at[0]
            continue
        schema = schema["properties"][name]
        at = at.setdefault(name, minimal(schema))
        if following == 0:
            schema = schema["items"]
            if not at:
                at.append(minimal(schema))
    return result, at


def compiled(directory: Path, objects: list[Json]) -> Json:
    """Return the document of ``waggle render`` for one node."""
    path = directory / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *objects]}))
    made_intent = CompiledManifests(load([str(path)], KINDS), TYPES, offline_settings("n1", {}))
    document = made_intent.document()
    return {
        "instances": document["instances"],
        "problems": sorted((p["field"], p["message"]) for p in document["problems"]),
    }


def schema_of(kind_name: str, version: str) -> Json:
    kind = KINDS.named(kind_name)
    assert kind is not None
    versions = custom_resource_definition(kind)["spec"]["versions"]
    (found,) = (one for one in versions if version.endswith(f"/{one['name']}"))
    spec: Json = found["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return {"type": "object", "required": ["spec"], "properties": {"spec": spec}}


def is_exception(kind: str, path: Path_) -> bool:
    names = ".".join(name for name in path if isinstance(name, str))
    return any(
        kind == of and (names.endswith(f".{end}") or f".{end}." in names) for of, end in EXCEPTIONS
    )


@pytest.mark.parametrize("name", SPECIMENS)
def test_they_mean_what_an_absent_field_means(name: str, tmp_path: Path) -> None:
    first, *others = SPECIMENS[name]
    kind = first["kind"]
    schema = schema_of(kind, first["apiVersion"])
    tried = 0
    for path, part in fields(schema):
        zero = ZERO.get(part.get("type", ""))
        if zero is None or not accepts(part, zero) or is_exception(kind, path):
            continue
        absent, at = placed(first, schema, path)
        at.pop(path[-1], None)
        given, at = placed(first, schema, path)
        at[path[-1]] = zero
        before = compiled(tmp_path, [absent, *others])
        assert compiled(tmp_path, [given, *others]) == before, path
        tried += 1
    assert tried


def test_an_exception_is_needed() -> None:
    """Each exception is a field of its kind."""
    for kind, end in EXCEPTIONS:
        first = next(found[0] for found in SPECIMENS.values() if found[0]["kind"] == kind)
        schema = schema_of(kind, first["apiVersion"])
        paths = [".".join(n for n in path if isinstance(n, str)) for path, _ in fields(schema)]
        assert any(path.endswith(f".{end}") for path in paths), (kind, end)
