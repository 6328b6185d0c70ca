"""FRR's configuration text of a generated FRRConfiguration: routes of the own AS are accepted, EVPN.

``allowas-in origin`` accepts a path whose origin AS is the own one: nodes of one AS behind an eBGP
router receive each other's routes. Source: FRR's bgpd, ``neighbor allowas-in``, ``l2vpn evpn``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reconcilers.ovnk.attached_networks import Network
from resources.frrk8s.frrconfiguration import RawConfig
from resources.frrk8s.neighbor import Neighbor

PRIORITY = 10
"""Of the text, among the texts of other objects."""


class Section(NamedTuple):
    """The router of one VRF, with its neighbours."""

    vrf: str
    """Empty for the default one."""
    asn: int
    neighbors: Sequence[Neighbor]


class EvpnRouter(NamedTuple):
    """The router of the VRF of an EVPN network with an IP-VRF."""

    asn: int
    network: Network


def raw_config(
    sections: Iterable[Section],
    mac_vrfs: Sequence[Network] | None = None,
    ip_vrfs: Iterable[EvpnRouter] = (),
) -> RawConfig:
    """Return FRR's text of a generated FRRConfiguration; without neighbours and EVPN none.

    ``mac_vrfs`` are the EVPN networks of the default VRF's router, or None without EVPN.
    """
    lines: list[str] = []
    for section in sorted(_joined(sections), key=lambda section: section.vrf):
        evpn = mac_vrfs if not section.vrf else None
        lines += _router(section, evpn)
    for router in sorted(ip_vrfs, key=lambda section: section.network.vrf):
        lines += _ip_vrf(router)
    if not lines:
        return RawConfig()
    return RawConfig(priority=PRIORITY, raw_config="".join(f"{line}\n" for line in lines))


def _joined(sections: Iterable[Section]) -> Iterator[Section]:
    """Join the sections of one VRF: neighbours of all of them, the AS number of the last."""
    joined: dict[str, Section] = {}
    for section in sections:
        before = joined.get(section.vrf)
        neighbors = section.neighbors if before is None else (*before.neighbors, *section.neighbors)
        joined[section.vrf] = section._replace(neighbors=neighbors)
    return iter(router for router in joined.values() if router.neighbors)


def _router(section: Section, mac_vrfs: Sequence[Network] | None) -> Iterator[str]:
    vrf = f" vrf {section.vrf}" if section.vrf else ""
    yield f"router bgp {section.asn}{vrf}"
    for family, colon in (("ipv4", False), ("ipv6", True)):
        names = sorted(
            {
                neighbor.address or neighbor.interface
                for neighbor in section.neighbors
                if not neighbor.address or (":" in neighbor.address) is colon
            }
        )
        if names:
            yield f" address-family {family} unicast"
            yield from (f"  neighbor {name} allowas-in origin" for name in names)
            yield " exit-address-family"
    if mac_vrfs is not None:
        yield " address-family l2vpn evpn"
        for name in sorted(
            {neighbor.address or neighbor.interface for neighbor in section.neighbors}
        ):
            yield f"  neighbor {name} activate"
            yield f"  neighbor {name} allowas-in origin"
        yield "  advertise-all-vni"
        for network in mac_vrfs:
            yield from _mac_vrf(network)
        yield " exit-address-family"
    yield from ("exit", "!")


def _mac_vrf(network: Network) -> Iterator[str]:
    vrf = network.evpn.mac_vrf if network.evpn is not None else None
    if vrf is None or not vrf.route_target:
        # FRR derives the route target, and knows the VNI of its device.
        return
    yield f"  vni {vrf.vni}"
    yield from (f"   route-target {way} {vrf.route_target}" for way in ("import", "export"))
    yield "  exit-vni"


def _ip_vrf(router: EvpnRouter) -> Iterator[str]:
    network = router.network
    vrf = network.evpn.ip_vrf if network.evpn is not None else None
    if vrf is None:
        return
    yield from (f"vrf {network.vrf}", f" vni {vrf.vni}", "exit-vrf", "!")
    yield f"router bgp {router.asn} vrf {network.vrf}"
    yield " address-family l2vpn evpn"
    yield from (f"  advertise {family} unicast" for family in families(network))
    if vrf.route_target:
        yield from (f"  route-target {way} {vrf.route_target}" for way in ("import", "export"))
    yield from (" exit-address-family", "exit", "!")


def families(network: Network) -> Iterator[str]:
    """Yield the families of a network's subnets, in the words of FRR's configuration text."""
    versions = {subnet.version for subnet in network.subnets}
    yield from (f"ipv{version}" for version in sorted(versions))
