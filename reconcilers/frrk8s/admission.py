"""The review of FRRConfigurations: fields without effect, and changes that reset a session. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import Admission
from reconcilers.frrk8s.field_values import address, vrf_name
from reconcilers.frrk8s.unit_parts import NeighborKey
from reconcilers.model import Problem, ref_to
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.frrk8s.neighbor import Neighbor
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect

NO_EFFECT: Final = "has no effect"


def node_group(dialect: Frrk8sDialect, snapshot: Snapshot, node: str) -> Hashable:
    """Return a node's group in the admission review: the FRRConfigurations that select it."""
    return dialect.selected(snapshot, dialect.tables.nodes.get(snapshot, ("", node))).group


def without_effect(dialect: Frrk8sDialect, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield FRRConfigurations of another namespace, and fields without effect, for a check."""
    namespace = dialect.options.namespace
    for row in dialect.tables.of(FRR_CONFIGURATION).all(snapshot):
        ref = ref_to(FRR_CONFIGURATION, row)
        if row.metadata.namespace != namespace:
            text = _other_namespace(namespace)
            yield Problem((ref,), "metadata.namespace", text, category="unsupported")
            continue
        for path, _, neighbor in _neighbors(row):
            if neighbor.disable_mp:
                yield Problem((ref,), f"{path}.disableMP", NO_EFFECT, category="unsupported")


def _other_namespace(namespace: str) -> str:
    return f"only FRRConfigurations in namespace {namespace} are used"


def warnings(
    dialect: Frrk8sDialect, row: FRRConfiguration, former: FRRConfiguration | None
) -> Iterator[str]:
    """Yield the admission warnings about an FRRConfiguration; ``former`` is it before an update."""
    if row.metadata.namespace != dialect.options.namespace:
        yield _other_namespace(dialect.options.namespace)
    before = {} if former is None else _restarting(former)
    for path, key, neighbor in _neighbors(row):
        if neighbor.disable_mp:
            yield f"{path}.disableMP: {NO_EFFECT}"
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


ADMISSION: Final = Admission((FRR_CONFIGURATION,), node_group, warnings, without_effect)
