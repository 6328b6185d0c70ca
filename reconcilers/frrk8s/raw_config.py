"""Raw configuration: the part of FRR's text that is understood, and the rest, which has no effect.

Understood are ``neighbor N allowas-in origin`` of a unicast family, which OVN-Kubernetes writes into
the FRRConfigurations that it generates, and redistribution (`reconcilers.frrk8s.raw_redistribution`).
Source: FRR's bgpd, ``neighbor PEER allowas-in origin``.
"""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

from reconcilers.frrk8s.raw_redistribution import RawRedistribution
from reconcilers.frrk8s.unit_parts import RawRoutes

_ROUTER: Final = re.compile(r"router bgp \d+(?: vrf (?P<vrf>\S+))?")
_VRF: Final = re.compile(r"vrf \S+")
_FAMILY: Final = re.compile(r"address-family (?P<family>.+)")
_ALLOWAS_IN_ORIGIN: Final = re.compile(r"neighbor (?P<neighbor>\S+) allowas-in origin")
_UNICAST: Final = frozenset({"ipv4", "ipv4 unicast", "ipv6", "ipv6 unicast"})
_EVPN: Final = "l2vpn evpn"
_GLOBAL: Final = ("ip ", "ipv6 ", "route-map ")
"""Lines with these words end the section of a router, as FRR reads them."""
_ENDS: Final = frozenset({"!", "exit", "exit-address-family", "exit-vni", "exit-vrf", "end"})


class RawMeaning(NamedTuple):
    """The settings of a raw configuration."""

    allowas_in_origin: frozenset[tuple[str, str]]
    """Neighbours by VRF (empty for the default one) and address or interface, as they are written."""
    has_evpn: bool
    """Whether it has EVPN."""
    routes: RawRoutes
    """Redistribution of tables of the kernel."""
    other: int
    """The number of the first line that is not understood, 1 of a text without any; 0 without one.

    A line is not shown: it may have a password."""


@functools.lru_cache(maxsize=4096)
def raw_meaning(text: str) -> RawMeaning:
    """Parse an FRRConfiguration's raw configuration: sections are known by their first lines."""
    reader = _Reader()
    for number, raw in enumerate(text.splitlines(), 1):
        line = " ".join(raw.split())
        if not line or line.startswith("!") or line in _ENDS:
            reader.end(line)
        elif not reader.begin(line) and not reader.take(number, line):
            reader.others.append(number)
    routes, without = reader.policies.resolved()
    other = min((*reader.others, *without), default=0)
    nothing = text and not (reader.neighbors or reader.has_evpn or routes.redistributions)
    return RawMeaning(
        frozenset(reader.neighbors), reader.has_evpn, routes, other or int(bool(nothing))
    )


class _Reader:
    """The section that a line is in, and what the lines before it have."""

    def __init__(self) -> None:
        self.neighbors: set[tuple[str, str]] = set()
        self.policies = RawRedistribution()
        self.has_evpn = False
        self.others: list[int] = []
        """The numbers of lines that are not understood."""
        self._router: str | None = None
        self._family = ""
        self._in_vrf = False

    def begin(self, line: str) -> bool:
        """Begin a section; returns False if a line begins none."""
        router = _ROUTER.fullmatch(line)
        family = _FAMILY.fullmatch(line) if self._router is not None else None
        if router is not None:
            self._enter(router["vrf"] or "")
        elif _VRF.fullmatch(line):
            self._enter(None, in_vrf=True)
        elif family is not None and family["family"] in (*_UNICAST, _EVPN):
            self._family = family["family"]
            self.has_evpn |= self._family == _EVPN
        elif family is not None:
            self._family = family["family"]
            return False
        else:
            return False
        return True

    def end(self, line: str) -> None:
        """End a section, if the line does."""
        if line == "exit-address-family" or (line in ("exit", "exit-vrf", "end") and self._family):
            self._family, self._in_vrf = "", False
        elif line in ("exit", "exit-vrf", "end"):
            self._enter(None)

    def take(self, number: int, line: str) -> bool:
        """Take a line of a section; returns False if it is not understood."""
        if self._family == _EVPN or (self._in_vrf and line.startswith("vni ")):
            self.has_evpn = True
            return True
        if self._router is None or line.startswith(_GLOBAL):
            self._router, self._family = None, ""
            return self.policies.take(number, line)
        if self._family not in _UNICAST:
            return False
        allowed = _ALLOWAS_IN_ORIGIN.fullmatch(line)
        if allowed is not None:
            self.neighbors.add((self._router, allowed["neighbor"]))
            return True
        return self.policies.redistribute(number, self._router, self._family, line)

    def _enter(self, router: str | None, *, in_vrf: bool = False) -> None:
        self._router, self._family, self._in_vrf = router, "", in_vrf
        self.policies.leave()
