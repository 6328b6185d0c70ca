"""What the webhook warns of: fields without effect, and changes that reset a session. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.frrk8s.unit import NeighborKey
from reconcilers.frrk8s.values import address, vrf_name
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.neighbor import Neighbor


def review_warnings(row: FRRConfiguration, former: FRRConfiguration | None) -> Iterator[str]:
    """Yield the warnings about an object; ``former`` is it before an update."""
    before = {} if former is None else _restarting(former)
    for path, key, neighbor in _neighbors(row):
        if neighbor.disable_mp:
            yield f"{path}.disableMP: has no effect"
        if before.get(key, neighbor.enable_graceful_restart) != neighbor.enable_graceful_restart:
            yield f"{path}.enableGracefulRestart: {key}: the change resets the session"


def _neighbors(row: FRRConfiguration) -> Iterator[tuple[str, NeighborKey, Neighbor]]:
    for i, router in enumerate(row.spec.bgp.routers):
        for j, neighbor in enumerate(router.neighbors):
            path = f"spec.bgp.routers[{i}].neighbors[{j}]"
            yield path, _key(neighbor, vrf_name(router.vrf)), neighbor


def _key(neighbor: Neighbor, vrf: str) -> NeighborKey:
    if neighbor.interface:
        return NeighborKey(vrf, neighbor.interface, is_interface=True)
    try:
        return NeighborKey(vrf, address(neighbor.address))
    except ValueError:
        return NeighborKey(vrf, neighbor.address)


def _restarting(row: FRRConfiguration) -> dict[NeighborKey, bool]:
    """Return whether each neighbour of an object has graceful restart: one entry is enough."""
    restarting: dict[NeighborKey, bool] = {}
    for _, key, neighbor in _neighbors(row):
        restarting[key] = restarting.get(key, False) or neighbor.enable_graceful_restart
    return restarting
