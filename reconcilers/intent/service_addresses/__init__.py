"""Rules for Service addresses that may be advertised, whatever dialect selects the Service. Pure.

``spec.externalIPs`` and the ingress status of a Service take any address from every user who may
write a Service. Without a rule, a Service attracts the traffic of another host: of a router, of this
node, of the metadata service at 169.254.169.254. ClusterIPs, pod networks, pools and interfaces are
configured by the administrator, and not subject to it.
"""

from reconcilers.intent.service_addresses.address_rules import (
    AGGREGATE_TOO_SHORT,
    AddressChanges,
    AddressRules,
    Rejection,
    address_rules,
    unrestricted,
)
from reconcilers.intent.service_addresses.judged import JudgedAddresses
from reconcilers.intent.service_addresses.martians import embedded_ipv4, martian
from reconcilers.intent.service_addresses.tracker import AddressRulesTracker

__all__ = [
    "AGGREGATE_TOO_SHORT",
    "AddressChanges",
    "AddressRules",
    "AddressRulesTracker",
    "JudgedAddresses",
    "Rejection",
    "address_rules",
    "embedded_ipv4",
    "martian",
    "unrestricted",
]
