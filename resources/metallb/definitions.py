"""The parts of the CustomResourceDefinitions of MetalLB's kinds that are not in their row types.

Columns are MetalLB's. ``status.conditions`` are ours: with MetalLB's own definitions an API server
drops them.
"""

from __future__ import annotations

from resources.crds.schema_markers import Column, Definition
from resources.metallb.ipaddresspool import IPAddressPoolStatus
from resources.metallb.status import ConfigurationStateStatus, ServiceBGPStatusStatus
from resources.metav1 import ConditionsStatus

_ACCEPTED = Column(
    "Accepted",
    '.status.conditions[?(@.type=="Accepted")].status',
    description="Whether nothing is wrong with it.",
    priority=1,
)
_AGE = Column("Age", ".metadata.creationTimestamp", "date")

BGP_PEER = Definition(
    "BGPPeer is a BGP session of selected nodes with a router.",
    columns=(
        Column("Address", ".spec.peerAddress", description="The address of the router."),
        Column("ASN", ".spec.peerASN", description="The AS number of the router."),
        Column("BFD Profile", ".spec.bfdProfile", description="The BFDProfile."),
        Column("Multi Hops", ".spec.ebgpMultiHop", description="More than one hop away."),
        _ACCEPTED,
    ),
    status=ConditionsStatus,
)
BGP_ADVERTISEMENT = Definition(
    "BGPAdvertisement advertises the addresses of pools that are assigned to Services.",
    columns=(
        Column("IPAddressPools", ".spec.ipAddressPools", description="The pools, by name."),
        Column(
            "IPAddressPool Selectors",
            ".spec.ipAddressPoolSelectors",
            description="The pools, by label.",
        ),
        Column("Peers", ".spec.peers", description="The BGPPeers, by name."),
        Column("Node Selectors", ".spec.nodeSelectors", description="The nodes.", priority=10),
        _ACCEPTED,
    ),
    status=ConditionsStatus,
)
IP_ADDRESS_POOL = Definition(
    "IPAddressPool has addresses that are assigned to Services.",
    columns=(
        Column("Auto Assign", ".spec.autoAssign", "boolean"),
        Column("Avoid Buggy IPs", ".spec.avoidBuggyIPs", "boolean"),
        Column("Addresses", ".spec.addresses"),
        _ACCEPTED,
    ),
    status=IPAddressPoolStatus,
)
COMMUNITY = Definition(
    "Community has names of BGP communities.", columns=(_ACCEPTED, _AGE), status=ConditionsStatus
)
BFD_PROFILE = Definition(
    "BFDProfile has the settings of BFD sessions.",
    columns=(
        Column("Passive Mode", ".spec.passiveMode", "boolean"),
        Column("Transmit Interval", ".spec.transmitInterval", "integer"),
        Column("Receive Interval", ".spec.receiveInterval", "integer"),
        Column("Multiplier", ".spec.detectMultiplier", "integer"),
        _ACCEPTED,
    ),
    status=ConditionsStatus,
)
SERVICE_BGP_STATUS = Definition(
    "ServiceBGPStatus has the BGPPeers to which one node advertises one Service.",
    columns=(
        Column("Node", ".status.node"),
        Column("Service Name", ".status.serviceName"),
        Column("Service Namespace", ".status.serviceNamespace"),
    ),
    status=ServiceBGPStatusStatus,
)
CONFIGURATION_STATE = Definition(
    "ConfigurationState reports whether a component can use MetalLB's objects as they are.",
    columns=(
        Column("Result", ".status.result"),
        Column("ErrorSummary", ".status.errorSummary"),
        _AGE,
    ),
    status=ConfigurationStateStatus,
)
