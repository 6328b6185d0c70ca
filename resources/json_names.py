"""Converts Python field names to Kubernetes' JSON names.

``local_asn`` is ``localASN``, ``router_id`` is ``routerID``: camel case with the acronyms that the
Kubernetes APIs write in capitals.
"""

from __future__ import annotations

_ACRONYMS = {
    "asn": "ASN",
    "asns": "ASNs",
    "cidr": "CIDR",
    "cidrs": "CIDRs",
    "id": "ID",
    "ip": "IP",
    "ips": "IPs",
    "ipv4": "IPv4",
    "ipv6": "IPv6",
}


def json_name(name: str) -> str:
    """Return the JSON name of a Python field name."""
    first, *rest = name.split("_")
    return first + "".join(_ACRONYMS.get(word, word.capitalize()) for word in rest)
