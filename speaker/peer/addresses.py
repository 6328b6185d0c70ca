"""Addresses as octets, for comparison; the only module of the core that parses their text."""

from __future__ import annotations

import ipaddress


def address_key(text: str) -> bytes:
    """Return an address as octets that sort, with its zone."""
    host, _, zone = text.partition("%")
    return ipaddress.ip_address(host).packed + zone.encode()


def address_octets(text: str) -> bytes:
    """Return an address as its 4 or 16 octets, without a zone."""
    host, *_ = text.partition("%")
    return ipaddress.ip_address(host).packed
