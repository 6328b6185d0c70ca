"""Antrea's kinds for BGP: BGPPolicy, and Egress as far as it is read.

Source: Antrea, ``docs/bgp-policy.md`` and the definitions of ``crd.antrea.io``.
"""

from resources.antrea.bgppolicy import BGPPolicy, bgp_policy_errors
from resources.antrea.egress import Egress, egress_errors

__all__ = ["BGPPolicy", "Egress", "bgp_policy_errors", "egress_errors"]
