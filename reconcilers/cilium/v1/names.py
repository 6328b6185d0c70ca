"""The names of translated objects: those of CFP-28175, made valid where they are not.

``bgpp-<policy>-<asn>`` and ``bgpp-<policy>-<asn>-<neighbour>``. An IPv6 address has dashes for its
colons, as a name of Kubernetes may have none; a name that is too long ends in a digest of the whole.
"""

from __future__ import annotations

import hashlib

LABEL = "advert"
"""The label by which PeerConfigs select the Advertisements."""
MAX_NAME = 253
MAX_LABEL_VALUE = 63


def cluster_config_name(policy: str) -> str:
    """Name the ClusterConfig of a policy; the CFP makes NodeConfigs at once and has no name for it."""
    return _fitted(f"bgpp-{policy}", MAX_NAME)


def advertisement_name(policy: str, asn: int, neighbor: str | None = None) -> str:
    """Name an Advertisement of a virtual router, or of one neighbour; its label's value too."""
    parts = [f"bgpp-{policy}-{asn}"]
    if neighbor is not None:
        parts.append(_address(neighbor))
    return _fitted("-".join(parts), MAX_LABEL_VALUE)


def peer_config_name(policy: str, asn: int, neighbor: str) -> str:
    """Name the PeerConfig of a neighbour."""
    return _fitted(f"bgpp-{policy}-{asn}-{_address(neighbor)}", MAX_NAME)


def instance_name(asn: int) -> str:
    """Name an instance as the virtual router is named."""
    return str(asn)


def _address(text: str) -> str:
    # A name ends in a letter or a digit: fd00:: is written fd00::0.
    return (text + "0" if text.endswith(":") else text).replace(":", "-")


def _fitted(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[: limit - 9].rstrip('-.')}-{digest}"
