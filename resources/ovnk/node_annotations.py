"""The annotations of a Node in which OVN-Kubernetes publishes its networks.

Each parser takes the text of an annotation, and raises `AnnotationError` with a clause for people.
Results are kept by text: the annotations of a thousand nodes are parsed once.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from resources.addresses import canonical_address, parsed_interface
from resources.errors import INVALID_JSON, shortened
from resources.ovnk.networkattachmentdefinition import PREFIX

SUBNETS: Final = f"{PREFIX}node-subnets"
PRIMARY_ADDRESS: Final = f"{PREFIX}node-primary-ifaddr"
VTEPS: Final = f"{PREFIX}vteps"
LAYER2_TUNNEL_IDS: Final = f"{PREFIX}udn-layer2-node-gateway-router-lrp-tunnel-ids"
GATEWAY: Final = f"{PREFIX}l3-gateway-config"
CHASSIS: Final = f"{PREFIX}node-chassis-id"
_KEPT: Final = 8192
"""Parsed annotations; a cluster of 1,000 nodes has about 4,000."""


class AnnotationError(ValueError):
    """The text of an annotation is not of its form."""


class PrimaryAddresses(NamedTuple):
    """The addresses of the primary interface of a node, without lengths; either may be None."""

    ipv4: str | None
    ipv6: str | None


def _object(text: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text)
    except INVALID_JSON as error:
        raise AnnotationError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise AnnotationError(f"is not a JSON object: {shortened(text)}")
    return value


def _texts(value: Any, key: str) -> tuple[str, ...]:  # noqa: ANN401  JSON
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise AnnotationError(f"{shortened(key)} is neither a text nor a list of texts")
    return tuple(texts)


def _interface(text: Any) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:  # noqa: ANN401  JSON
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            return parsed_interface(text)
    raise AnnotationError(f"{shortened(str(text))} is not an address with a prefix length")


@functools.lru_cache(maxsize=_KEPT)
def subnets(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return a node's subnets by network from OVN-Kubernetes' annotation, without host bits."""
    return {
        name: tuple(sorted(str(_interface(text).network) for text in _texts(value, name)))
        for name, value in _object(text).items()
    }


@functools.lru_cache(maxsize=_KEPT)
def primary_addresses(text: str) -> PrimaryAddresses:
    """Return the addresses of the primary interface from a node's annotation."""
    content = _object(text)
    return PrimaryAddresses(_address(content, "ipv4", 4), _address(content, "ipv6", 6))


def _address(content: Mapping[str, Any], key: str, version: int) -> str | None:
    text = content.get(key)
    if not text:
        return None
    interface = _interface(text)
    if interface.version != version:
        raise AnnotationError(f"{key}: {shortened(str(text))} is of the other family")
    return str(interface.ip)


@functools.lru_cache(maxsize=_KEPT)
def vteps(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of the node by VTEP, from its annotation, in order."""
    by_vtep = {}
    for name, value in _object(text).items():
        if not isinstance(value, dict):
            raise AnnotationError(f"{shortened(name)} is not a JSON object")
        ips = value.get("ips")
        addresses = _texts(ips if ips is not None else [], f"{name}.ips")
        by_vtep[name] = tuple(sorted(_host(address) for address in addresses))
    return by_vtep


def _host(text: str) -> str:
    try:
        return canonical_address(text)
    except ValueError:
        raise AnnotationError(f"{shortened(text)} is not an IP address") from None


@functools.lru_cache(maxsize=_KEPT)
def tunnel_ids(text: str) -> frozenset[str]:
    """Return the networks with a tunnel ID in a node's annotation."""
    return frozenset(_object(text))


@functools.lru_cache(maxsize=_KEPT)
def gateway_addresses(text: str) -> tuple[str, ...]:
    """Return the default network's gateway addresses from a node's annotation."""
    gateway = _object(text).get("default")
    if not isinstance(gateway, dict):
        raise AnnotationError("has no default gateway")
    addresses = gateway.get("ip-addresses") or gateway.get("ip-address") or []
    return tuple(str(_interface(text).ip) for text in _texts(addresses, "ip-addresses"))
