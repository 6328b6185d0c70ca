"""The names of translated objects: as in CFP-28175, changed where Kubernetes rejects them.

``bgpp-<policy>-<asn>`` and ``bgpp-<policy>-<asn>-<neighbor>``. The colons of an IPv6 address become
dashes; a name beyond the limit is truncated and ends in a hash of the whole name.
"""

from __future__ import annotations

import hashlib

LABEL = "advert"
"""The label by which PeerConfigs select the Advertisements."""
MAX_NAME = 253
MAX_LABEL_VALUE = 63


def cluster_config_name(policy: str) -> str:
    """Return the name of the ClusterConfig that a v1 policy is translated to; the CFP names none."""
    return _fitted(f"bgpp-{policy}", MAX_NAME)


def advertisement_name(policy: str, asn: int, neighbor: str | None = None) -> str:
    """Return the name, and label value, of a v1 virtual router's or neighbor's Advertisement."""
    parts = [f"bgpp-{policy}-{asn}"]
    if neighbor is not None:
        parts.append(_address(neighbor))
    return _fitted("-".join(parts), MAX_LABEL_VALUE)


def peer_config_name(policy: str, asn: int, neighbor: str) -> str:
    """Return the name of the PeerConfig that a neighbor of v1 is translated to."""
    return _fitted(f"bgpp-{policy}-{asn}-{_address(neighbor)}", MAX_NAME)


def instance_name(asn: int) -> str:
    """Return the name of the instance that a virtual router of v1 is translated to."""
    return str(asn)


def _address(text: str) -> str:
    # A name has to end in a letter or digit: fd00:: becomes fd00::0.
    return (text + "0" if text.endswith(":") else text).replace(":", "-")


def _fitted(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[: limit - 9].rstrip('-.')}-{digest}"
