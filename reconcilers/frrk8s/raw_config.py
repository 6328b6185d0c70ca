"""Raw configuration: the part of FRR's text that is understood, and the rest, which has no effect.

Understood is ``neighbor N allowas-in origin`` of a unicast family, which OVN-Kubernetes writes into the
FRRConfigurations that it generates. Source: FRR's bgpd, ``neighbor PEER allowas-in origin``.
"""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

_ROUTER: Final = re.compile(r"router bgp \d+(?: vrf (?P<vrf>\S+))?")
_VRF: Final = re.compile(r"vrf \S+")
_FAMILY: Final = re.compile(r"address-family (?P<family>.+)")
_ALLOWAS_IN_ORIGIN: Final = re.compile(r"neighbor (?P<neighbor>\S+) allowas-in origin")
_UNICAST: Final = frozenset({"ipv4", "ipv4 unicast", "ipv6", "ipv6 unicast"})
_EVPN: Final = "l2vpn evpn"
_ENDS: Final = frozenset({"!", "exit", "exit-address-family", "exit-vni", "exit-vrf", "end"})


class RawMeaning(NamedTuple):
    """The settings of a raw configuration."""

    allowas_in_origin: frozenset[tuple[str, str]]
    """Neighbours by VRF (empty for the default one) and address or interface, as they are written."""
    has_evpn: bool
    """Whether it has EVPN."""
    other: int
    """The number of the first line that is not understood, 1 of a text without any; 0 without one.

    A line is not shown: it may have a password."""


@functools.lru_cache(maxsize=4096)
def raw_meaning(text: str) -> RawMeaning:
    """Parse a raw configuration. Sections are known by their first lines, as FRR reads them."""
    neighbors: set[tuple[str, str]] = set()
    router: str | None = None
    family, other = "", 0
    evpn = in_vrf = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = " ".join(raw.split())
        if not line or line.startswith("!") or line in _ENDS:
            if line in ("exit", "exit-vrf", "end"):
                in_vrf = False
                router, family = (None, "") if not family else (router, "")
            elif line == "exit-address-family":
                family = ""
            continue
        match = _ROUTER.fullmatch(line)
        if match is not None:
            router, family, in_vrf = match["vrf"] or "", "", False
        elif _VRF.fullmatch(line):
            router, family, in_vrf = None, "", True
        elif router is not None and (section := _FAMILY.fullmatch(line)) is not None:
            family = section["family"]
            evpn |= family == _EVPN
            if family not in _UNICAST and family != _EVPN:
                other = other or number
        elif family == _EVPN or (in_vrf and line.startswith("vni ")):
            evpn = True
        elif (
            router is not None
            and family in _UNICAST
            and (allowed := _ALLOWAS_IN_ORIGIN.fullmatch(line))
        ):
            neighbors.add((router, allowed["neighbor"]))
        else:
            other = other or number
    nothing = bool(text) and not neighbors and not evpn
    return RawMeaning(frozenset(neighbors), evpn, other or int(nothing))
