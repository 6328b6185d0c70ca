"""The VRFs of an object: those that it has routers of, and those that it imports."""

from __future__ import annotations

from reconcilers.frrk8s.unit import Unit, VrfPrefixes
from reconcilers.frrk8s.values import Prefix, prefix, vrf_name


def routed_vrfs(unit: Unit) -> dict[str, frozenset[Prefix]]:
    """Return the prefixes of each VRF that a unit has a router of; invalid ones are left out."""
    found: dict[str, set[Prefix]] = {}
    for router in unit.row.spec.bgp.routers:
        prefixes = found.setdefault(vrf_name(router.vrf), set())
        for text in router.prefixes:
            try:
                prefixes.add(prefix(text))
            except ValueError:
                continue
    return {vrf: frozenset(prefixes) for vrf, prefixes in found.items()}


def imported_elsewhere(unit: Unit) -> frozenset[str]:
    """Return the VRFs that a unit imports and has no router of."""
    routers = unit.row.spec.bgp.routers
    imported = {vrf_name(one.vrf) for router in routers for one in router.imports}
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
        self._routed = frozenset(vrf_name(router.vrf) for router in unit.row.spec.bgp.routers)

    def __contains__(self, vrf: str) -> bool:
        """Return whether an object of the node has a router of a VRF."""
        return vrf in self._routed or vrf in self._elsewhere

    def prefixes(self, vrf: str) -> frozenset[Prefix]:
        """Return the prefixes of an imported VRF: the object's own router is all that counts."""
        if vrf not in self._routed:
            return self._elsewhere.get(vrf, frozenset())
        if self._own is None:
            self._own = routed_vrfs(self._unit)
        return self._own[vrf]
