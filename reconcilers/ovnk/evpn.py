"""EVPN in a generated FRRConfiguration: routers of IP-VRFs, and the VNIs, as text or in typed fields.

Source: OVN-Kubernetes, ``docs/features/bgp-integration/evpn.md``; FRR-k8s, ``spec.bgp.routers[].evpn``.
Waggle's speaker does not speak EVPN: the objects are for FRR.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from reconcilers.ovnk.attached_networks import Network, is_default_vrf
from reconcilers.ovnk.generated_text import EvpnText, IpVrf, Section, raw_config
from resources.frrk8s.evpn import Evpn as TypedEvpn
from resources.frrk8s.evpn import L2Vni, L3Vni
from resources.frrk8s.frrconfiguration import RawConfig, Router
from resources.frrk8s.neighbor import Neighbor
from resources.ovnk.cni import CniVrf


class Evpn:
    """The additions of a node's EVPN networks to the object of one source."""

    def __init__(
        self,
        networks: Sequence[Network],
        base: Router | None,
        source: Sequence[Router],
        vrfs: Collection[str],
        copied: Sequence[Router],
        sections: Sequence[Section],
    ) -> None:
        """``source`` are the routers of the source, ``vrfs`` are the VRFs of all selected sources.

        ``base`` is the first router of the default VRF of the source, ``copied`` are generated
        routers so far, and ``sections`` are the sections of these in the text.
        """
        self._base = base
        self._copied = {router.vrf for router in copied}
        self._sections = list(sections)
        if base is not None and not any(not section.vrf for section in sections):
            # EVPN needs the sessions of the default VRF, also where nothing else is sent there.
            self._sections.append(Section("", base.asn, base.neighbors))
        defaults = [section for section in self._sections if not section.vrf]
        self._mac_vrfs = sorted(
            (network.evpn.mac_vrf for network in networks if network.evpn and network.evpn.mac_vrf),
            key=_vni,
        )
        self._ip_vrfs = sorted(
            (
                IpVrf(network, network.evpn.ip_vrf)
                for network in networks
                if network.evpn and network.evpn.ip_vrf
            ),
            key=lambda ip_vrf: _vni(ip_vrf.vrf),
        )
        of_source = {router.vrf: router.asn for router in reversed(source)}
        self._asns: dict[str, int] = {}
        self.matched: set[str] = set()
        """The networks that have a router."""
        for ip_vrf in self._ip_vrfs:
            vrf = ip_vrf.network.vrf
            if vrf in of_source:
                self._asns[vrf] = of_source[vrf]
            elif vrf not in vrfs and defaults:
                self._asns[vrf] = defaults[-1].asn
                self.matched.add(ip_vrf.network.name)
        if any(section.neighbors for section in defaults):
            routed = {ip_vrf.network.name for ip_vrf in self._ip_vrfs}
            self.matched |= {network.name for network in networks} - routed

    def ip_vrf_routers(self, prefixes: Mapping[str, tuple[str, ...]]) -> list[Router]:
        """Return routers of IP-VRFs, without neighbours: EVPN has the neighbours of the default VRF.

        A network whose VRF has a router in another source gets it in the object of that one.
        """
        return [
            Router(asn=self._asns[network.vrf], vrf=network.vrf, prefixes=prefixes[network.name])
            for network, _ in self._ip_vrfs
            if network.vrf in self._asns and network.vrf not in self._copied
        ]

    def raw(self) -> RawConfig:
        """Return the text of a generated FRRConfiguration with EVPN."""
        return raw_config(self._sections, EvpnText(self._mac_vrfs, self._ip_vrfs, self._asns))

    def raw_without_evpn(self) -> RawConfig:
        """Return the text of a generated FRRConfiguration whose EVPN is in typed fields."""
        return raw_config(self._sections)

    def typed(self, routers: Sequence[Router]) -> list[Router]:
        """Return the routers of a generated FRRConfiguration with EVPN in typed fields."""
        with_evpn = list(routers)
        base = self._base
        if base is not None and base.neighbors and not any(map(_is_underlay, routers)):
            with_evpn.append(replace(base, prefixes=(), imports=()))
        by_vrf = {ip_vrf.network.vrf: ip_vrf.vrf for ip_vrf in self._ip_vrfs}
        return [self._typed(router, by_vrf.get(router.vrf)) for router in with_evpn]

    def _typed(self, router: Router, ip_vrf: CniVrf | None) -> Router:
        if _is_underlay(router):
            l2vnis = tuple(
                L2Vni(vni=vrf.vni, import_rts=_targets(vrf), export_rts=_targets(vrf))
                for vrf in self._mac_vrfs
                if vrf.route_target
            )
            neighbors = tuple(map(_with_evpn, router.neighbors))
            evpn = TypedEvpn(advertise_vnis="All", l2vnis=l2vnis)
            return replace(router, neighbors=neighbors, evpn=evpn)
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


def _is_underlay(router: Router) -> bool:
    """True for a router of the default VRF with sessions: a router for imports alone has none."""
    return is_default_vrf(router.vrf) and bool(router.neighbors)


def _vni(vrf: CniVrf) -> int:
    return vrf.vni


def _targets(vrf: CniVrf) -> tuple[str, ...]:
    return (vrf.route_target,) if vrf.route_target else ()


def _with_evpn(neighbor: Neighbor) -> Neighbor:
    families = {"evpn", *(neighbor.address_families or ("unicast",))}
    return replace(neighbor, address_families=tuple(sorted(families)))
