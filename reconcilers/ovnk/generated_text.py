"""FRR's configuration text of a generated FRRConfiguration: routes of the own AS are accepted, EVPN.

``allowas-in origin`` accepts a path whose origin AS is the own one: nodes of one AS behind an eBGP
router receive each other's routes. Source: FRR's bgpd, ``neighbor allowas-in``, ``l2vpn evpn``; the
order of the sections is OVN-Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from reconcilers.ovnk.attached_networks import Network
from resources.frrk8s.frrconfiguration import RawConfig
from resources.frrk8s.neighbor import Neighbor
from resources.ovnk.cni import CniVrf

PRIORITY = 10
"""Of the text, among the texts of other objects."""


class Section(NamedTuple):
    """The router of one VRF, with its neighbours."""

    vrf: str
    """Empty for the default one."""
    asn: int
    neighbors: Sequence[Neighbor]


class IpVrf(NamedTuple):
    """The IP-VRF of an EVPN network."""

    network: Network
    vrf: CniVrf


class EvpnText(NamedTuple):
    """The part of EVPN in the text of one source."""

    mac_vrfs: Sequence[CniVrf]
    """In the order of their VNIs."""
    ip_vrfs: Sequence[IpVrf]
    """In the order of their VNIs."""
    asns: Mapping[str, int]
    """By VRF: the AS numbers of the IP-VRFs that the object has a router of."""


_NO_EVPN: Final = EvpnText((), (), {})


def raw_config(sections: Iterable[Section], evpn: EvpnText | None = None) -> RawConfig:
    """Return FRR's text of a generated FRRConfiguration; without neighbours and EVPN none."""
    by_vrf = _joined(sections)
    lines: list[str] = []
    default = by_vrf.pop("", None)
    if default is not None:
        lines += _router(default, () if evpn is None else _vnis(default, evpn.mac_vrfs))
    evpn = evpn or _NO_EVPN
    ip_vrfs: dict[str, IpVrf] = {}
    for ip_vrf in evpn.ip_vrfs:
        name = ip_vrf.network.vrf
        lines += (f"vrf {name}", f" vni {ip_vrf.vrf.vni}", "exit-vrf", "!")
        ip_vrfs[name] = ip_vrf
    for name, asn in evpn.asns.items():
        by_vrf[name] = by_vrf.get(name, Section(name, asn, ()))._replace(asn=asn)
    for name in sorted(by_vrf):
        lines += _router(by_vrf[name], _prefixes(ip_vrfs.get(name)))
    if not lines:
        return RawConfig()
    return RawConfig(priority=PRIORITY, raw_config="".join(f"{line}\n" for line in lines))


def _joined(sections: Iterable[Section]) -> dict[str, Section]:
    """Join the sections of one VRF: neighbours of all of them, the AS number of the last."""
    joined: dict[str, Section] = {}
    for section in sections:
        before = joined.get(section.vrf)
        neighbors = section.neighbors if before is None else (*before.neighbors, *section.neighbors)
        joined[section.vrf] = section._replace(neighbors=neighbors)
    return {vrf: section for vrf, section in joined.items() if section.neighbors}


def _router(section: Section, evpn: Iterable[str]) -> Iterator[str]:
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
    yield from evpn
    yield from ("exit", "!")


def _vnis(default: Section, mac_vrfs: Iterable[CniVrf]) -> Iterator[str]:
    """Yield the EVPN of the router of the default VRF: its neighbours, and MAC-VRFs."""
    yield " address-family l2vpn evpn"
    for name in sorted({neighbor.address or neighbor.interface for neighbor in default.neighbors}):
        yield f"  neighbor {name} activate"
        yield f"  neighbor {name} allowas-in origin"
    yield "  advertise-all-vni"
    for vrf in mac_vrfs:
        # Without a route target FRR derives it, and knows the VNI of its device.
        if vrf.route_target:
            yield f"  vni {vrf.vni}"
            yield from (f"   route-target {way} {vrf.route_target}" for way in ("import", "export"))
            yield "  exit-vni"
    yield " exit-address-family"


def _prefixes(ip_vrf: IpVrf | None) -> Iterator[str]:
    """Yield the EVPN of the router of an IP-VRF: the prefixes that it advertises."""
    if ip_vrf is None:
        return
    yield " address-family l2vpn evpn"
    yield from (f"  advertise {family} unicast" for family in families(ip_vrf.network))
    target = ip_vrf.vrf.route_target
    if target:
        yield from (f"  route-target {way} {target}" for way in ("import", "export"))
    yield " exit-address-family"


def families(network: Network) -> Iterator[str]:
    """Yield the families of a network's subnets, in the words of FRR's configuration text."""
    versions = {subnet.version for subnet in network.subnets}
    yield from (f"ipv{version}" for version in sorted(versions))
