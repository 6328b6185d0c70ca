"""The definitions of BGPPolicy and Egress as Antrea installs them, built from its tables."""

from __future__ import annotations

from typing import Any

_PORT = {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535}
_ASN = dict(_PORT)
_FREE = {"type": "object"}
_SELECTOR = {
    "type": "object",
    "properties": {
        "matchLabels": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "matchExpressions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string"},
                    "operator": {
                        "type": "string",
                        "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                    },
                    "values": {
                        "type": "array",
                        "items": {
                            "type": "string",
                            "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
                        },
                    },
                },
            },
        },
    },
}
_PEER = {
    "type": "object",
    "required": ["address", "asn"],
    "properties": {
        "address": {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
        "port": {**_PORT, "default": 179},
        "asn": _ASN,
        "multihopTTL": {**_PORT, "maximum": 255, "default": 1},
        "gracefulRestartTimeSeconds": {**_PORT, "maximum": 3600, "default": 120},
    },
}
_IP_TYPES = ["ClusterIP", "LoadBalancerIP", "ExternalIP"]
_ADVERTISEMENTS = {
    "type": "object",
    "properties": {
        "service": {
            "type": "object",
            "properties": {
                "ipTypes": {"type": "array", "items": {"type": "string", "enum": _IP_TYPES}}
            },
        },
        "pod": _FREE,
        "egress": _FREE,
    },
}
_CONFEDERATION = {
    "type": "object",
    "properties": {"identifier": _ASN, "memberASNs": {"type": "array", "items": _ASN}},
}
_POLICY_SPEC = {
    "type": "object",
    "required": ["nodeSelector", "localASN"],
    "properties": {
        "nodeSelector": _SELECTOR,
        "localASN": _ASN,
        "listenPort": {**_PORT, "default": 179},
        "confederation": _CONFEDERATION,
        "advertisements": _ADVERTISEMENTS,
        "bgpPeers": {"type": "array", "items": _PEER},
    },
}


def _definition(
    kind: str,
    plural: str,
    version: str,
    schema: dict[str, Any],
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.crd.antrea.io"},
        "spec": {
            "group": "crd.antrea.io",
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **more,
                }
            ],
        },
    }


BGP_POLICY = _definition(
    "BGPPolicy",
    "bgppolicies",
    "v1alpha1",
    {"type": "object", "required": ["spec"], "properties": {"spec": _POLICY_SPEC}},
    additionalPrinterColumns=[
        {"name": "Local ASN", "type": "integer", "jsonPath": ".spec.localASN"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
)
EGRESS = _definition(
    "Egress",
    "egresses",
    "v1beta1",
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    subresources={"status": {}},
)
