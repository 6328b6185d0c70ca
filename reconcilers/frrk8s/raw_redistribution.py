"""Redistribution in raw configuration: the part of FRR's text with prefix lists that permit. Pure.

What users of FRR-k8s write (frr-k8s#469, openshift/enhancements#1982)::

    ip import-table 198
    ip prefix-list vips seq 5 permit 192.0.2.0/24 ge 32
    route-map vips permit 10
     match ip address prefix-list vips
    route-map 10.0.0.1-out permit 4000
     match ip address prefix-list vips
    router bgp 64512
     address-family ipv4 unicast
      redistribute table-direct 198 route-map vips

A route map has to consist of entries that permit by a prefix list, and a prefix list of entries that
permit, perhaps with a last entry that denies the rest; without a list FRR redistributes all routes.
``NEIGHBOR-out`` is FRR-k8s's name for the outgoing route map of a neighbour, ``NEIGHBOR-VRF-out`` in a
VRF; here it permits redistributed routes alone. Source: FRR's zebra and bgpd.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from reconcilers.frrk8s.field_values import address, vrf_name
from reconcilers.frrk8s.prefix_rules import InvalidSelector, prefix_rule
from reconcilers.frrk8s.unit_parts import RawRoutes, RedistributedPart
from reconcilers.model import PrefixRule
from reconcilers.redistribution import Redistribution
from resources.frrk8s.neighbor import PrefixSelector
from resources.host import KernelTable

_IMPORT_TABLE: Final = re.compile(r"ip import-table \d+")
_PREFIX_LIST: Final = re.compile(
    r"(?P<ip>ip|ipv6) prefix-list (?P<name>\S+)(?: seq (?P<seq>\d{1,10}))? (?P<action>permit|deny) "
    r"(?P<prefix>any|\S+/\d{1,3})(?: ge (?P<ge>\d{1,3}))?(?: le (?P<le>\d{1,3}))?"
)
_ROUTE_MAP: Final = re.compile(r"route-map (?P<name>\S+) (?P<action>permit|deny) (?P<seq>\d{1,10})")
_MATCH: Final = re.compile(r"match (?P<ip>ip|ipv6) address prefix-list (?P<name>\S+)")
_REDISTRIBUTE: Final = re.compile(
    r"redistribute table(?:-direct)? (?P<table>\d{1,5}) route-map (?P<map>\S+)"
)
_OUT: Final = re.compile(r"(?P<neighbor>\S+)-out")
_ANY: Final = {"ip": "0.0.0.0/0", "ipv6": "::/0"}


class _Entry(NamedTuple):
    """An entry of a prefix list."""

    permits: bool
    rule: PrefixRule
    is_any: bool


class _MapEntry:
    """An entry of a route map."""

    def __init__(self, *, permits: bool) -> None:
        self.permits = permits
        self.lists: list[tuple[str, str]] = []
        self.is_understood = True


class _Redistribute(NamedTuple):
    number: int
    vrf: str
    ip: str
    table: int
    route_map: str


class RawRedistribution:
    """Collects the lines of a text about redistribution, and resolves them at its end."""

    def __init__(self) -> None:
        self._lists: dict[tuple[str, str], dict[int, _Entry | None]] = {}
        self._maps: dict[str, dict[int, _MapEntry]] = {}
        self._lines: dict[int, tuple[str, ...]] = {}
        """Lines of prefix lists and route maps: their kind and name."""
        self._redistributes: list[_Redistribute] = []
        self._entry: _MapEntry | None = None
        self._of_map: tuple[str, ...] = ()

    def take(self, number: int, line: str) -> bool:
        """Take a line about redistribution outside of routers; returns False of any other line."""
        if _IMPORT_TABLE.fullmatch(line):
            self._lines[number] = ("import",)
        elif (listed := _PREFIX_LIST.fullmatch(line)) is not None:
            entries = self._lists.setdefault((listed["ip"], listed["name"]), {})
            sequence = int(listed["seq"]) if listed["seq"] else max(entries, default=0) // 5 * 5 + 5
            entries[sequence] = _entry(listed)
            self._lines[number] = ("list", listed["ip"], listed["name"])
        elif (mapped := _ROUTE_MAP.fullmatch(line)) is not None:
            entry = self._entry = _MapEntry(permits=mapped["action"] == "permit")
            self._maps.setdefault(mapped["name"], {})[int(mapped["seq"])] = entry
            self._of_map = self._lines[number] = ("map", mapped["name"])
        elif self._entry is not None:
            match = _MATCH.fullmatch(line)
            if match is None:
                self._entry.is_understood = False
            else:
                self._entry.lists.append((match["ip"], match["name"]))
            self._lines[number] = self._of_map
        else:
            return False
        return True

    def leave(self) -> None:
        """End the entry of a route map, which raw redistribution may refer to."""
        self._entry = None

    def redistribute(self, number: int, vrf: str, family: str, line: str) -> bool:
        """Take a line ``redistribute`` of a router's address family; returns False of any other."""
        match = _REDISTRIBUTE.fullmatch(line)
        if match is None:
            return False
        ip = "ipv6" if family.startswith("ipv6") else "ip"
        self._redistributes.append(
            _Redistribute(number, vrf, ip, int(match["table"]), match["map"])
        )
        return True

    def resolved(self) -> tuple[RawRoutes, list[int]]:
        """Return the redistribution of routers and neighbours, and the lines without effect."""
        redistributions: list[tuple[str, Redistribution]] = []
        used: set[tuple[str, ...]] = {("import",)} if self._redistributes else set()
        without = []
        for number, vrf, ip, table, route_map in self._redistributes:
            rules = self._rules(route_map, ip)
            if rules and table:
                redistributions.append((vrf_name(vrf), Redistribution(KernelTable(table), rules)))
                used |= self._used(route_map)
            else:
                without.append(number)
        neighbors = list(self._neighbors(redistributions, used)) if redistributions else []
        without += [number for number, name in self._lines.items() if name not in used]
        return RawRoutes(tuple(redistributions), tuple(neighbors)), without

    def _neighbors(
        self, redistributions: list[tuple[str, Redistribution]], used: set[tuple[str, ...]]
    ) -> Iterator[tuple[str, str, RedistributedPart]]:
        """Yield what the outgoing route maps of neighbours permit of redistributed routes."""
        for name in self._maps:
            out = _OUT.fullmatch(name)
            if out is None:
                continue
            rules = (*(self._rules(name, "ip") or ()), *(self._rules(name, "ipv6") or ()))
            if not rules:
                continue
            vrf, end = _neighbor(out["neighbor"], {vrf for vrf, _ in redistributions})
            of_vrf = tuple(of for router, of in redistributions if router == vrf)
            used |= self._used(name)
            yield vrf, end, RedistributedPart(of_vrf, rules, {})

    def _used(self, name: str) -> set[tuple[str, ...]]:
        lists = {pair for entry in self._maps[name].values() for pair in entry.lists}
        return {("map", name), *(("list", *pair) for pair in lists)}

    def _rules(self, name: str, ip: str) -> tuple[PrefixRule, ...] | None:
        """Return what a route map permits of a family; None if it is not understood."""
        rules: list[PrefixRule] = []
        for _, entry in sorted(self._maps.get(name, {}).items(), key=lambda pair: pair[0]):
            if not entry.is_understood or len(entry.lists) > 1:
                return None
            if not entry.permits:
                if entry.lists:
                    return None
                break
            if not entry.lists:
                return None
            if entry.lists[0][0] == ip:
                listed = self._listed(entry.lists[0])
                if listed is None:
                    return None
                rules += listed
        return tuple(rules)

    def _listed(self, key: tuple[str, str]) -> list[PrefixRule] | None:
        """Return what a prefix list permits; None if it is not understood, or does not exist."""
        if key not in self._lists:
            return None
        rules = []
        for _, entry in sorted(self._lists[key].items(), key=lambda pair: pair[0]):
            if entry is None:
                return None
            if not entry.permits:
                if not entry.is_any:
                    return None
                break
            rules.append(entry.rule)
        return rules


def _entry(match: re.Match[str]) -> _Entry | None:
    """Return an entry of a prefix list; None for an invalid one."""
    text, ip = match["prefix"], match["ip"]
    ge, le = (None if match[key] is None else int(match[key]) for key in ("ge", "le"))
    if text == "any":
        text, ge, le = _ANY[ip], 0, None
    if (":" in text) != (ip == "ipv6"):
        return None
    try:
        rule = prefix_rule(PrefixSelector(prefix=text, ge=ge, le=le), None)
    except InvalidSelector:
        return None
    covers_all = rule.prefix == _ANY[ip] and not rule.ge
    longest = 128 if ip == "ipv6" else 32
    is_any = covers_all and (rule.le == longest or (rule.ge == 0 and rule.le is None))
    return _Entry(match["action"] == "permit", rule, is_any)


def _neighbor(name: str, vrfs: set[str]) -> tuple[str, str]:
    """Return the VRF and the end of a neighbour by FRR-k8s's name of it."""
    for vrf in sorted(vrfs - {""}, key=len, reverse=True):
        if name.endswith(f"-{vrf}"):
            return vrf, _end(name.removesuffix(f"-{vrf}"))
    return "", _end(name)


def _end(text: str) -> str:
    with contextlib.suppress(ValueError):
        return address(text)
    return text
