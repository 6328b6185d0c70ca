"""Parses the annotations of a Node that set a virtual router's router ID and listen port.

``cilium.io/bgp-virtual-router.{asn}: router-id=192.0.2.1,local-port=179``. The last one of a repeated
key applies. An invalid value is an error.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

from resources.decimal_numbers import decimal_number
from resources.errors import shortened

PREFIX = "cilium.io/bgp-virtual-router."


class AnnotationError(ValueError):
    """An invalid annotation: its key, and the reason."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


class RouterSettings(NamedTuple):
    """The settings of one virtual router on one node."""

    router_id: str | None = None
    local_port: int | None = None
    """None: the instance does not listen."""
    ignored: tuple[str, ...] = ()
    """Unknown parts."""


def annotation_key(asn: int) -> str:
    """Return the key of Cilium's annotation of Nodes for a virtual router of v1."""
    return f"{PREFIX}{asn}"


def router_settings(annotations: Mapping[str, str], asn: int) -> RouterSettings:
    """Parse Cilium's annotation of a Node for an AS's virtual router. Raises `AnnotationError`."""
    key = annotation_key(asn)
    router_id, local_port = None, None
    ignored = []
    for part in annotations.get(key, "").split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name == "router-id" and equals:
            router_id = _router_id(key, value)
        elif name == "local-port" and equals:
            local_port = _port(key, value)
        elif part.strip():
            ignored.append(part.strip())
    return RouterSettings(router_id, local_port, tuple(ignored))


def unreadable_keys(annotations: Mapping[str, str]) -> list[str]:
    """Return Cilium's annotations of a Node for virtual routers that name no AS number."""
    return [
        key
        for key in sorted(annotations)
        if key.startswith(PREFIX.rstrip("."))
        and not (
            key.startswith(PREFIX) and (asn := key.removeprefix(PREFIX)).isascii() and asn.isdigit()
        )
    ]


def _router_id(key: str, text: str) -> str:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        address = ipaddress.IPv4Address(0)
    if not int(address):
        raise AnnotationError(
            key, f"router-id {shortened(text)} is not an IPv4 address other than 0.0.0.0"
        )
    return str(address)


def _port(key: str, text: str) -> int | None:
    number = decimal_number(text, 65535)
    if number is None:
        raise AnnotationError(key, f"local-port {shortened(text)} is not within 0 to 65535")
    return number or None
