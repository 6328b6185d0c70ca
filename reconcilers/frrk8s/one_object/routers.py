"""The routers and BFD profiles of an object: AS, router ID, prefixes, imported VRFs, neighbours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from reconcilers.frrk8s.exports import Available
from reconcilers.frrk8s.field_values import (
    Prefix,
    address,
    bfd_profile,
    prefix,
    prefixes_of,
    shown_vrf,
    vrf_name,
)
from reconcilers.frrk8s.one_object.neighbors import Neighbors
from reconcilers.frrk8s.raw_config import raw_meaning
from reconcilers.frrk8s.redistribute_annotation import ANNOTATION
from reconcilers.frrk8s.redistribute_annotation import parse as parse_annotation
from reconcilers.frrk8s.unit_parts import (
    EVPN,
    KERNEL_ROUTES,
    RAW_CONFIG,
    Compiled,
    Missing,
    ProfilePart,
    RawRoutes,
    RouterPart,
    Unit,
    UnitFindings,
    VrfPrefixes,
)
from reconcilers.redistribution import Redistribution
from reconcilers.sliced_work import Pieces, Slices
from resources.addresses import interface_errors, router_id_errors
from resources.enumeration import counted
from resources.errors import MAX_LISTED_ERRORS, checked_items, shortened
from resources.frrk8s.evpn import evpn_errors
from resources.frrk8s.frrconfiguration import Router


def compile_unit(unit: Unit, elsewhere: VrfPrefixes, pieces: Pieces) -> Slices[Compiled]:
    """Compile the routers and BFD profiles of one object, in slices of prefixes and neighbours.

    ``elsewhere`` has the prefixes of the VRFs of other units of the node.
    """
    return _Compiler(unit, elsewhere, pieces).compiled()


class _Compiler:
    """Compiles one unit; collects every broken rule."""

    def __init__(self, unit: Unit, elsewhere: VrfPrefixes, pieces: Pieces) -> None:
        self._unit = unit
        self._pieces = pieces
        self._vrfs = Vrfs(unit, elsewhere)
        self._findings = UnitFindings()
        self._profiles: set[str] = set()
        self._neighbors = Neighbors(unit, self._profiles, self._findings, pieces)
        self._redistributions: dict[str, tuple[Redistribution, ...]] = {}
        """By VRF, of the annotation."""

    def compiled(self) -> Slices[Compiled]:
        row, findings = self._unit.row, self._findings
        if row.invalid:
            return Compiled(errors=row.invalid)
        profiles = tuple(self._bfd_profiles())
        self._annotated()
        routers = []
        for i, router in enumerate(row.spec.bgp.routers):
            routers.append((yield from self._router(router, f"spec.bgp.routers[{i}]")))
        allowed, raw_routes = self._raw(row.spec.raw.raw_config)
        self._kernel_routes(routers)
        if findings.errors:
            return Compiled(errors=tuple(findings.errors), missing=tuple(findings.missing))
        return Compiled(
            tuple(routers),
            profiles,
            missing=tuple(findings.missing),
            unsupported=tuple(findings.unsupported),
            passwords=tuple(
                part
                for router in routers
                for part in router.neighbors
                if part.session.password is not None
            ),
            allowas_in_origin=allowed,
            raw_routes=raw_routes,
        )

    def _annotated(self) -> None:
        """Read the annotation; an object of another dialect has none."""
        text = self._unit.row.metadata.annotations.get(ANNOTATION)
        if text is None or self._unit.fields is not None:
            return
        parsed = parse_annotation(text)
        self._findings.errors += parsed.errors
        routed = {vrf_name(router.vrf) for router in self._unit.row.spec.bgp.routers}
        for vrf, redistribution, path in parsed.redistributions:
            if vrf not in routed:
                text = f"the object has no router of VRF {shown_vrf(vrf)}"
                self._findings.error(path, text)
            self._redistributions[vrf] = (*self._redistributions.get(vrf, ()), redistribution)

    def _raw(self, text: str) -> tuple[frozenset[tuple[str, str]], RawRoutes]:
        """Return the neighbours of which routes of the own AS are accepted, and redistribution.

        The rest is reported.
        """
        meaning, path = raw_meaning(text), "spec.raw.rawConfig"
        if meaning.other:
            reason = "raw configuration has no effect"
            understood = {
                "allowas-in origin": meaning.allowas_in_origin,
                "redistribution": meaning.routes.redistributions,
            }
            named = [name for name, part in understood.items() if part]
            if named:
                reason = f"{reason} but for {' and '.join(named)}: line {meaning.other}"
            self._findings.no_effect(RAW_CONFIG, path, reason)
        if meaning.has_evpn:
            self._findings.no_effect(EVPN, path, "EVPN in raw configuration has no effect")
        ignored = set()
        for vrf, end in meaning.allowas_in_origin:
            with contextlib.suppress(ValueError):
                end = address(end)
            ignored.add((vrf_name(vrf), end))
        return frozenset(ignored), meaning.routes

    def _kernel_routes(self, routers: Sequence[RouterPart]) -> None:
        """Report the neighbours from which routes are accepted: one finding, which has their number."""
        accepting = [
            part
            for router in routers
            for part in router.neighbors
            if part.settings.accept is None or part.settings.accept
        ]
        if accepting:
            first, more = accepting[0], len(accepting) - 1
            others = f" and {counted(more, 'more neighbor')}" if more else ""
            text = f"{first.key}{others}: accepted routes are not installed in the kernel"
            self._findings.no_effect(KERNEL_ROUTES, f"{first.path}.toReceive.allowed", text)

    def _bfd_profiles(self) -> Iterator[ProfilePart]:
        for i, spec in enumerate(self._unit.row.spec.bgp.bfd_profiles):
            path = f"spec.bgp.bfdProfiles[{i}]"
            if spec.name in self._profiles:
                self._findings.error(
                    f"{path}.name", f"BFD profile {shortened(spec.name)} is defined twice"
                )
                continue
            self._profiles.add(spec.name)
            yield ProfilePart(path, bfd_profile(spec))

    def _router(self, router: Router, path: str) -> Slices[RouterPart]:
        vrf = vrf_name(router.vrf)
        if router.asn == 0:
            self._findings.error(f"{path}.asn", f"AS number 0 in VRF {shown_vrf(vrf)} (RFC 7607)")
        self._findings.errors += router_id_errors(router.id or None, f"{path}.id")
        if vrf:
            self._findings.errors += interface_errors(vrf, f"{path}.vrf")
        before = len(self._findings.errors)
        prefixes = yield from self._prefixes(router.prefixes, f"{path}.prefixes")
        unchecked = len(self._findings.errors) > before + MAX_LISTED_ERRORS
        resolved = len(self._findings.missing)
        imports = self._imports(router, vrf, path)
        if router.evpn is not None:
            self._findings.errors += evpn_errors(router.evpn, f"{path}.evpn")
            self._findings.no_effect(
                EVPN, f"{path}.evpn", f"EVPN of VRF {shown_vrf(vrf)} has no effect"
            )
        available = Available(
            prefixes.union(*(self._vrfs.prefixes(name) for name in imports)),
            complete=len(self._findings.missing) == resolved and not unchecked,
            redistributions=tuple(
                redistribution
                for name in (vrf, *sorted(imports - {vrf}))
                for redistribution in self._redistributions.get(name, ())
            ),
        )
        neighbors = []
        for i, neighbor in checked_items(
            router.neighbors, f"{path}.neighbors", self._findings.errors
        ):
            where = f"{path}.neighbors[{i}]"
            part = yield from self._neighbors.compile(neighbor, router, available, where)
            if part is not None:
                neighbors.append(part)
            if self._pieces.fill_slice():
                yield
        return RouterPart(
            vrf,
            path,
            router.asn,
            router.id or None,
            prefixes,
            imports,
            tuple(neighbors),
            self._redistributions.get(vrf, ()),
        )

    def _prefixes(self, texts: Sequence[str], path: str) -> Slices[frozenset[Prefix]]:
        networks = yield from prefixes_of(texts, self._pieces)
        if networks is not None:
            return frozenset(networks)
        # Some are wrong.
        prefixes = set()
        for i, text in checked_items(texts, path, self._findings.errors):
            try:
                prefixes.add(prefix(text))
            except ValueError as error:
                self._findings.error(f"{path}[{i}]", str(error))
            if self._pieces.fill_slice():
                yield
        return frozenset(prefixes)

    def _imports(self, router: Router, vrf: str, path: str) -> frozenset[str]:
        imports = set()
        for i, imported in checked_items(router.imports, f"{path}.imports", self._findings.errors):
            name, where = vrf_name(imported.vrf), f"{path}.imports[{i}].vrf"
            if name == vrf:
                self._findings.error(where, f"VRF {shown_vrf(vrf)} imports itself")
            elif name and (errors := list(interface_errors(name, where))):
                self._findings.errors += errors
            elif name not in self._vrfs:
                self._findings.missing.append(Missing(where, shown_vrf(name)))
            imports.add(name)
        return frozenset(imports)


def routed_vrfs(unit: Unit) -> dict[str, frozenset[Prefix]]:
    """Return the prefixes of each VRF that one object has a router of; invalid ones are ignored."""
    routed: dict[str, set[Prefix]] = {}
    for router in unit.row.spec.bgp.routers:
        prefixes = routed.setdefault(vrf_name(router.vrf), set())
        for text in router.prefixes:
            try:
                prefixes.add(prefix(text))
            except ValueError:
                continue
    return {vrf: frozenset(prefixes) for vrf, prefixes in routed.items()}


def imported_elsewhere(unit: Unit) -> frozenset[str]:
    """Return the VRFs that the routers of one object import and that it has no router of."""
    routers = unit.row.spec.bgp.routers
    imported = {vrf_name(imported.vrf) for router in routers for imported in router.imports}
    if not imported:
        return frozenset()
    return frozenset(imported - {vrf_name(router.vrf) for router in routers})


class Vrfs:
    """The VRFs that one object can import, with their prefixes."""

    def __init__(self, unit: Unit, elsewhere: VrfPrefixes) -> None:
        """``elsewhere`` has the prefixes of the VRFs of other units of the node."""
        self._unit = unit
        self._elsewhere = elsewhere
        self._own: dict[str, frozenset[Prefix]] | None = None
        """The prefixes of its VRFs, once one of them is imported."""
        self._routed = frozenset([vrf_name(router.vrf) for router in unit.row.spec.bgp.routers])

    def __contains__(self, vrf: str) -> bool:
        """Return whether an object of the node has a router of a VRF."""
        return vrf in self._routed or vrf in self._elsewhere

    def prefixes(self, vrf: str) -> frozenset[Prefix]:
        """Return the prefixes of a VRF that a router imports: of the object's own, if it has one."""
        if vrf not in self._routed:
            return self._elsewhere.get(vrf, frozenset())
        if self._own is None:
            self._own = routed_vrfs(self._unit)
        return self._own[vrf]
