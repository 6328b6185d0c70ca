"""EVPN in a generated FRRConfiguration: routers of IP-VRFs, and the VNIs, as text or in typed fields.

Source: OVN-Kubernetes, ``docs/features/bgp-integration/evpn.md``; FRR-k8s, ``spec.bgp.routers[].evpn``.
Waggle's speaker does not speak EVPN: the objects are for FRR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from reconcilers.ovnk.attached_networks import Network, is_default_vrf
from reconcilers.ovnk.generated_text import EvpnRouter, Section, raw_config
from resources.frrk8s.evpn import Evpn as TypedEvpn
from resources.frrk8s.evpn import L2Vni, L3Vni
from resources.frrk8s.frrconfiguration import RawConfig, Router
from resources.frrk8s.neighbor import Neighbor
from resources.ovnk.cni import CniVrf


def has_ip_vrf(network: Network | None) -> bool:
    """True if a network is routed by EVPN: it has an IP-VRF."""
    return network is not None and network.evpn is not None and network.evpn.ip_vrf is not None


class Evpn:
    """The additions of a node's EVPN networks to the object of one source."""

    def __init__(
        self,
        networks: Sequence[Network],
        base: Router | None,
        sources: Sequence[Router],
        copied: Sequence[Router],
        sections: Sequence[Section],
    ) -> None:
        """``base`` is the router of the default VRF with neighbours, ``copied`` are routers so far.

        ``sections`` are the sections of these routers in the text.
        """
        self._base = base
        self._sections = sections
        self._vrfs = {router.vrf for router in copied}
        self._by_vrf = {router.vrf: router for router in reversed(sources)}
        self._ip_vrfs: list[EvpnRouter] = []
        for network in sorted(filter(has_ip_vrf, networks), key=lambda ip_vrf: ip_vrf.vrf):
            source = self._by_vrf.get(network.vrf) or base
            if source is not None:
                self._ip_vrfs.append(EvpnRouter(source.asn, network))
        self._mac_vrfs = [
            network
            for network in networks
            if network.evpn is not None and network.evpn.mac_vrf is not None
        ]
        self.matched = {ip_vrf.network.name for ip_vrf in self._ip_vrfs}
        """The networks that have a router."""
        if base is not None:
            self.matched |= {network.name for network in networks if not has_ip_vrf(network)}

    def ip_vrf_routers(self, prefixes: Mapping[str, tuple[str, ...]]) -> list[Router]:
        """Return generated routers for the IP-VRFs of EVPN networks that no source has one of."""
        return [
            Router(asn=ip_vrf.asn, vrf=ip_vrf.network.vrf, prefixes=prefixes[ip_vrf.network.name])
            for ip_vrf in self._ip_vrfs
            if ip_vrf.network.vrf not in self._vrfs
        ]

    def raw(self) -> RawConfig:
        """Return the text of a generated FRRConfiguration with EVPN."""
        return raw_config(self._all_sections, self._mac_vrfs, self._ip_vrfs)

    def raw_without_evpn(self) -> RawConfig:
        """Return the text of a generated FRRConfiguration whose EVPN is in typed fields."""
        return raw_config(self._all_sections)

    @property
    def _all_sections(self) -> list[Section]:
        """The sections, with all neighbours of the default VRF: EVPN is exchanged with each."""
        sections = [section for section in self._sections if section.vrf or self._base is None]
        if self._base is not None:
            sections.append(Section("", self._base.asn, self._base.neighbors))
        return sections

    def typed(self, routers: Sequence[Router]) -> list[Router]:
        """Return the routers of a generated FRRConfiguration with EVPN in typed fields."""
        with_evpn = list(routers)
        if self._base is not None and not any(is_default_vrf(ip_vrf.vrf) for ip_vrf in with_evpn):
            with_evpn.append(replace(self._base, prefixes=(), imports=()))
        by_vrf = {ip_vrf.network.vrf: ip_vrf.network for ip_vrf in self._ip_vrfs}
        return [self._typed(router, by_vrf.get(router.vrf)) for router in with_evpn]

    def _typed(self, router: Router, network: Network | None) -> Router:
        if is_default_vrf(router.vrf):
            l2vnis = tuple(
                L2Vni(vni=vrf.vni, import_rts=_targets(vrf), export_rts=_targets(vrf))
                for mac_vrf in self._mac_vrfs
                if mac_vrf.evpn is not None and (vrf := mac_vrf.evpn.mac_vrf) is not None
                if vrf.route_target
            )
            neighbors = tuple(map(_with_evpn, router.neighbors))
            evpn = TypedEvpn(advertise_vnis="All", l2vnis=l2vnis)
            return replace(router, neighbors=neighbors, evpn=evpn)
        ip_vrf = network.evpn.ip_vrf if network is not None and network.evpn is not None else None
        if ip_vrf is None:
            return router
        targets = _targets(ip_vrf)
        l3vni = L3Vni(
            vni=ip_vrf.vni,
            import_rts=targets,
            export_rts=targets,
            advertise_prefixes=("unicast",),
        )
        return replace(router, evpn=TypedEvpn(l3vni=l3vni))


def _targets(vrf: CniVrf) -> tuple[str, ...]:
    return (vrf.route_target,) if vrf.route_target else ()


def _with_evpn(neighbor: Neighbor) -> Neighbor:
    families = neighbor.address_families or ("unicast",)
    return (
        neighbor if "evpn" in families else replace(neighbor, address_families=(*families, "evpn"))
    )
