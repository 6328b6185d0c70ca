"""The neighbours of an object: session, families, accepted prefixes and routes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from reconcilers.frrk8s.exports import Available, Exported, Exports
from reconcilers.frrk8s.field_values import Prefix, address, vrf_name
from reconcilers.frrk8s.one_object.session import compile_session
from reconcilers.frrk8s.prefix_rules import InvalidSelector, prefix_rule
from reconcilers.frrk8s.unit_parts import (
    EVPN,
    NeighborKey,
    NeighborPart,
    NeighborSettings,
    Unit,
    UnitFindings,
)
from reconcilers.model import Attributes, PrefixRule
from reconcilers.sliced_work import Pieces, Slices
from resources.addresses import interface_errors
from resources.errors import checked_items, shortened
from resources.frrk8s.frrconfiguration import Router
from resources.frrk8s.neighbor import Advertise, Neighbor

COMPARED: Final = 64
"""Different entries of earlier neighbours with which one is compared: an object may have thousands."""


class Neighbors:
    """Compiles the neighbours of one object; equal routes of several are one value."""

    def __init__(
        self, unit: Unit, profiles: Container[str], findings: UnitFindings, pieces: Pieces
    ) -> None:
        """``profiles`` are the names of the BFD profiles of the object."""
        self._unit = unit
        self._profiles = profiles
        self._findings = findings
        self._pieces = pieces
        self._routes: list[Mapping[Prefix, Attributes]] = []
        """The different routes of the last neighbours."""
        self._exports: list[tuple[Advertise, Available, tuple[bool, bool], Exported]] = []
        """The different entries of the last neighbours, with what their routes depend on."""

    def compile(
        self, spec: Neighbor, router: Router, available: Available, path: str
    ) -> Slices[NeighborPart | None]:
        """Compile a neighbour of one object's router, which has these prefixes; None without a key."""
        findings = self._findings
        key = _key(spec, vrf_name(router.vrf), path, findings)
        if key is None:
            return None
        session = compile_session(self._unit, spec, router, key, path, findings, self._profiles)
        families = frozenset(spec.address_families or ("unicast",))
        if "evpn" in families:
            text = f"{key}: the family evpn is not exchanged"
            findings.no_effect(EVPN, f"{path}.addressFamilies", text)
        both = session.dual_stack
        exported = yield from self._exported(spec.to_advertise, available, both, key, path)
        findings.errors += exported.errors
        accept = yield from accepted_prefixes(self._unit, spec, key, path, findings, self._pieces)
        settings = NeighborSettings(
            session,
            spec.enable_graceful_restart,
            families,
            accept,
            spec.password,
            spec.allow_as_in,
        )
        routes = self._shared(exported.routes)
        return NeighborPart(
            key, path, settings, routes, exported.preferences, exported.redistributed
        )

    def _exported(
        self, spec: Advertise, available: Available, both: bool, key: NeighborKey, path: str
    ) -> Slices[Exported]:
        """Compile what is advertised, or return that of an earlier neighbour with an equal entry."""
        families = (both, ":" in key.end)
        for before, was_available, had, exported in self._exports:
            if had == families and was_available is available and before == spec:
                return exported
        where = f"{path}.toAdvertise"
        compiled = yield from Exports(spec, available, both, key, where, self._pieces).compile()
        if not compiled.errors and not compiled.preferences:
            # Errors and local preferences have the path of their neighbour.
            self._exports.append((spec, available, families, compiled))
            del self._exports[:-COMPARED]
        return compiled

    def _shared(self, routes: Mapping[Prefix, Attributes]) -> Mapping[Prefix, Attributes]:
        """Return the equal routes of an earlier neighbour, if there are any."""
        for before in self._routes:
            if before == routes:
                return before
        self._routes.append(routes)
        del self._routes[:-COMPARED]
        return routes


def _key(spec: Neighbor, vrf: str, path: str, findings: UnitFindings) -> NeighborKey | None:
    where = f" in VRF {vrf}" if vrf else ""
    if spec.address and spec.interface:
        ends = f"address {shortened(spec.address)} and interface {shortened(spec.interface)}"
        findings.error(f"{path}.address", f"a neighbor{where} has both {ends}")
        return None
    if spec.interface:
        errors = list(interface_errors(spec.interface, f"{path}.interface"))
        findings.errors += errors
        return None if errors else NeighborKey(vrf, spec.interface, is_interface=True)
    if not spec.address:
        findings.error(f"{path}.address", f"a neighbor{where} has neither address nor interface")
        return None
    try:
        return NeighborKey(vrf, address(spec.address))
    except ValueError as error:
        findings.error(f"{path}.address", f"neighbor{where}: {error}")
        return None


def accepted_prefixes(
    unit: Unit, spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings, pieces: Pieces
) -> Slices[frozenset[PrefixRule] | None]:
    """Compile the prefixes that one object accepts from a neighbour to rules; None accepts all."""
    allowed = spec.to_receive.allowed
    if allowed.mode == "all":
        return None
    rules = set()
    where = f"{path}.toReceive.allowed.prefixes"
    for i, selector in checked_items(allowed.prefixes, where, findings.errors):
        try:
            rules.add(prefix_rule(selector, unit.ref))
        except InvalidSelector as error:
            findings.error(f"{where}[{i}].{error.field}", f"{key}: {error}")
        if pieces.fill_slice():
            yield
    return frozenset(rules)
