"""Translates BGPPeers to FRRConfigurations: one for each, with one router and one neighbour. Pure.

Source: MetalLB internal/bgp/frrk8s/frrk8s.go; in place of its one FRRConfiguration for a node, each
BGPPeer is its own, so that the merge names the BGPPeer. Source address and local AS are translated,
which MetalLB does not translate.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from resources.addresses import canonical_address
from resources.frrk8s.frrconfiguration import (
    BfdProfile,
    BgpConfig,
    FRRConfiguration,
    FRRConfigurationSpec,
    Router,
)
from resources.frrk8s.neighbor import (
    Advertise,
    Neighbor,
    SecretReference,
)
from resources.metallb.bfdprofile import BFDProfile
from resources.metallb.bgppeer import BGPPeer, end_of, timers, vrf_of
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family

_ROUTER: Final = "spec.bgp.routers"
_NEIGHBOR: Final = f"{_ROUTER}.neighbors"
FIELDS: Final = {
    f"{_ROUTER}.asn": "spec.myASN",
    f"{_ROUTER}.id": "spec.routerID",
    f"{_ROUTER}.vrf": "spec.vrf",
    f"{_NEIGHBOR}": "spec",
    f"{_NEIGHBOR}.asn": "spec.peerASN",
    f"{_NEIGHBOR}.dynamicASN": "spec.dynamicASN",
    f"{_NEIGHBOR}.address": "spec.peerAddress",
    f"{_NEIGHBOR}.interface": "spec.interface",
    f"{_NEIGHBOR}.sourceaddress": "spec.sourceAddress",
    f"{_NEIGHBOR}.port": "spec.peerPort",
    f"{_NEIGHBOR}.password": "spec.password",
    f"{_NEIGHBOR}.passwordSecret": "spec.passwordSecret",
    f"{_NEIGHBOR}.holdTime": "spec.holdTime",
    f"{_NEIGHBOR}.keepaliveTime": "spec.keepaliveTime",
    f"{_NEIGHBOR}.connectTime": "spec.connectTime",
    f"{_NEIGHBOR}.ebgpMultiHop": "spec.ebgpMultiHop",
    f"{_NEIGHBOR}.bfdProfile": "spec.bfdProfile",
    f"{_NEIGHBOR}.dualStackAddressFamily": "spec.dualStackAddressFamily",
    f"{_NEIGHBOR}.localASN": "spec.localASN",
}
"""Paths of an FRRConfiguration without indices, and paths of the BGPPeer that it is translated from."""
ADVERTISEMENT_FIELDS: Final = {
    f"{_NEIGHBOR}.toAdvertise.withLocalPref.localPref": "spec.localPref",
    f"{_NEIGHBOR}.toAdvertise.withLocalPref": "spec.localPref",
}
"""The same for a BGPAdvertisement."""
_PROFILE: Final = "spec.bgp.bfdProfiles"
PROFILE_FIELDS: Final = {
    f"{_PROFILE}.{name}": f"spec.{name}"
    for name in (
        "receiveInterval",
        "transmitInterval",
        "detectMultiplier",
        "echoInterval",
        "echoMode",
        "passiveMode",
        "minimumTtl",
    )
} | {_PROFILE: "spec"}
"""The same for a BFDProfile."""


def families_of(peer: BGPPeer) -> tuple[Family, ...]:
    """Return the families of the session that a BGPPeer is translated to."""
    if peer.spec.interface or peer.spec.dual_stack_address_family:
        return (IPV4_UNICAST, IPV6_UNICAST)
    return (IPV6_UNICAST,) if ":" in peer.spec.peer_address else (IPV4_UNICAST,)


def neighbor_of(peer: BGPPeer) -> Neighbor:
    """Translate a BGPPeer to a neighbour, without routes. The namespace of a Secret is MetalLB's."""
    spec, times = peer.spec, timers(peer.spec)
    source = spec.source_address
    return Neighbor(
        asn=spec.peer_asn or None,
        dynamic_asn=spec.dynamic_asn,
        local_asn=spec.local_asn,
        address="" if spec.interface else end_of(peer),
        interface=spec.interface,
        sourceaddress=canonical_address(source) if source else "",
        port=spec.peer_port,
        password=spec.password,
        password_secret=SecretReference(name=spec.password_secret.name),
        hold_time=_seconds(times.hold),
        keepalive_time=_seconds(times.keepalive),
        connect_time=_seconds(times.connect),
        ebgp_multi_hop=spec.ebgp_multi_hop,
        bfd_profile=spec.bfd_profile,
        enable_graceful_restart=spec.enable_graceful_restart,
        dual_stack_address_family=spec.dual_stack_address_family,
    )


def _seconds(seconds: int | None) -> str | None:
    return None if seconds is None else f"{seconds}s"


def profile_of(row: BFDProfile) -> BfdProfile:
    """Translate a BFDProfile to a BFD profile of FRR-k8s; the fields are the same."""
    values = {name: getattr(row.spec, name) for name in row.spec.__struct_fields__}
    return BfdProfile(name=row.metadata.name, **values)


def configuration_of(peer: BGPPeer, advertise: Advertise | None = None) -> FRRConfiguration:
    """Translate a BGPPeer to an FRRConfiguration; its BFD profile is a row of its own."""
    neighbor = neighbor_of(peer)
    prefixes: tuple[str, ...] = ()
    if advertise is not None:
        neighbor = replace(neighbor, to_advertise=advertise)
        prefixes = advertise.allowed.prefixes
    router = Router(
        asn=peer.spec.my_asn,
        id=peer.spec.router_id,
        vrf=vrf_of(peer),
        neighbors=(neighbor,),
        prefixes=prefixes,
    )
    spec = FRRConfigurationSpec(bgp=BgpConfig(routers=(router,)))
    return FRRConfiguration(metadata=peer.metadata, spec=spec)


def profile_configuration(row: BFDProfile) -> FRRConfiguration:
    """Translate a BFDProfile to an FRRConfiguration, which is merged whether it is used or not."""
    spec = FRRConfigurationSpec(bgp=BgpConfig(bfd_profiles=(profile_of(row),)))
    return FRRConfiguration(metadata=row.metadata, spec=spec)
