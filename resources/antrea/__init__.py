"""Antrea's kinds for BGP: BGPPolicy, and Egress as far as it is read.

Source: Antrea, ``docs/bgp-policy.md`` and the definitions of ``crd.antrea.io``.
"""

from resources.antrea.bgppolicy import BGPPolicy
from resources.antrea.egress import Egress

__all__ = ["BGPPolicy", "Egress"]
