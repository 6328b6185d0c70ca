"""MetalLB's kinds. L2Advertisements are read and left alone; statuses are written, never read."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from resources.kind import Kind, KindFamily, selecting_nodes
from resources.label_selectors import LabelSelector
from resources.metallb import definitions
from resources.metallb.bfdprofile import BFDProfile, BFDProfileSpec, profile_errors
from resources.metallb.bgpadvertisement import (
    BGPAdvertisement,
    BGPAdvertisementSpec,
    advertisement_errors,
)
from resources.metallb.bgppeer import BGPPeer, BGPPeerSpec, BGPPeerV1Beta1, peer_errors
from resources.metallb.community import Community, CommunitySpec, community_errors
from resources.metallb.ipaddresspool import IPAddressPool, IPAddressPoolSpec, pool_errors
from resources.metallb.l2advertisement import L2Advertisement
from resources.metallb.objects import decoder
from resources.metallb.status import ConfigurationState, ServiceBGPStatus

GROUP: Final = "metallb.io"
_V1BETA1: Final = ("v1beta1",)


def node_selectors(row: BGPPeer | BGPAdvertisement) -> tuple[LabelSelector, ...]:
    """Return the node selectors of an object of MetalLB's kinds; none: it is for all nodes."""
    # An object whose node selectors are invalid concerns every node.
    broken = any(error.path.startswith("spec.nodeSelectors") for error in row.errors)
    return () if broken else row.spec.node_selectors


BGP_PEER = Kind(
    "BGPPeer",
    BGPPeer,
    group=GROUP,
    versions=("v1beta2",),
    namespaced=True,
    table="metallb-bgp-peers",
    family=KindFamily(
        others=frozenset(
            {"ConfigurationState", "L2Advertisement", "ServiceBGPStatus", "ServiceL2Status"}
        )
    ),
    strict=True,
    definition=definitions.BGP_PEER,
    convert=decoder(
        BGPPeer,
        BGPPeerSpec,
        peer_errors,
        lambda selectors, texts: BGPPeerSpec(
            my_asn=0,
            node_selectors=selectors,
            peer_address=texts.get("peerAddress", ""),
            interface=texts.get("interface", ""),
            vrf=texts.get("vrf", ""),
        ),
        former={"metallb.io/v1beta1": (BGPPeerV1Beta1, lambda row: row.present)},
    ),
    former=MappingProxyType({"v1beta1": BGPPeerV1Beta1}),
    of_node=selecting_nodes(node_selectors),
)
BGP_ADVERTISEMENT = Kind(
    "BGPAdvertisement",
    BGPAdvertisement,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    table="metallb-bgp-advertisements",
    strict=True,
    definition=definitions.BGP_ADVERTISEMENT,
    convert=decoder(
        BGPAdvertisement,
        BGPAdvertisementSpec,
        advertisement_errors,
        lambda selectors, _: BGPAdvertisementSpec(node_selectors=selectors),
    ),
    of_node=selecting_nodes(node_selectors),
)
IP_ADDRESS_POOL = Kind(
    "IPAddressPool",
    IPAddressPool,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    table="metallb-ip-address-pools",
    strict=True,
    definition=definitions.IP_ADDRESS_POOL,
    convert=decoder(
        IPAddressPool,
        IPAddressPoolSpec,
        pool_errors,
        lambda *_: IPAddressPoolSpec(addresses=()),
    ),
)
COMMUNITY = Kind(
    "Community",
    Community,
    group=GROUP,
    versions=_V1BETA1,
    plural="communities",
    namespaced=True,
    table="metallb-communities",
    strict=True,
    definition=definitions.COMMUNITY,
    convert=decoder(Community, CommunitySpec, community_errors, lambda *_: CommunitySpec()),
)
BFD_PROFILE = Kind(
    "BFDProfile",
    BFDProfile,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    table="metallb-bfd-profiles",
    strict=True,
    definition=definitions.BFD_PROFILE,
    convert=decoder(BFDProfile, BFDProfileSpec, profile_errors, lambda *_: BFDProfileSpec()),
)
L2_ADVERTISEMENT = Kind(
    "L2Advertisement",
    L2Advertisement,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    table="metallb-l2-advertisements",
)
SERVICE_BGP_STATUS = Kind(
    "ServiceBGPStatus",
    ServiceBGPStatus,
    group=GROUP,
    versions=_V1BETA1,
    plural="servicebgpstatuses",
    namespaced=True,
    table="metallb-service-bgp-statuses",
    strict=True,
    definition=definitions.SERVICE_BGP_STATUS,
)
CONFIGURATION_STATE = Kind(
    "ConfigurationState",
    ConfigurationState,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    table="metallb-configuration-states",
    strict=True,
    definition=definitions.CONFIGURATION_STATE,
)

CONFIGURATION: Final[tuple[Kind[Any], ...]] = (
    BGP_PEER,
    BGP_ADVERTISEMENT,
    IP_ADDRESS_POOL,
    COMMUNITY,
    BFD_PROFILE,
)
"""Kinds of which sessions and routes of a node are compiled; units of ``--on-conflict=isolate``."""
KINDS: Final[tuple[Kind[Any], ...]] = (
    *CONFIGURATION,
    L2_ADVERTISEMENT,
    SERVICE_BGP_STATUS,
    CONFIGURATION_STATE,
)
