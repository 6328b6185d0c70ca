"""FRR-k8s's kinds. Statuses are written, never read."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from resources.errors import FieldError, as_written
from resources.frrk8s import definitions
from resources.frrk8s.frrconfiguration import (
    FRRConfiguration,
    FRRConfigurationSpec,
)
from resources.frrk8s.frrk8sconfiguration import FRRK8sConfiguration
from resources.frrk8s.status import BGPSessionState, FRRNodeState
from resources.kind import DEFAULT_NAMESPACE, Kind, KindFamily, selecting_nodes
from resources.label_selectors import LabelSelector, strict_selector_errors
from resources.meta import ObjectMeta
from resources.schema import structural_errors, without_nulls

GROUP: Final = "frrk8s.metallb.io"
_V1BETA1: Final = ("v1beta1",)
SELECTOR: Final = "spec.nodeSelector"
_NEIGHBOR: Final = re.compile(r"spec\.bgp\.routers\[(\d+)\]\.neighbors\[(\d+)\]")


def _invalid(value: Any, errors: tuple[FieldError, ...]) -> FRRConfiguration:  # noqa: ANN401  JSON
    """Keep the node selector of an object that the schema refuses, if the selector is valid."""
    metadata = msgspec.convert(without_nulls(value["metadata"]), ObjectMeta)
    spec = value.get("spec")
    selector = spec.get("nodeSelector") if isinstance(spec, dict) else None
    nodes = LabelSelector()
    if selector is not None:
        broken = structural_errors(selector, LabelSelector)
        if not broken:
            nodes = msgspec.convert(selector, LabelSelector)
    if not metadata.namespace:
        metadata = msgspec.structs.replace(metadata, namespace=DEFAULT_NAMESPACE)
    named = tuple(_naming_neighbor(value, error) for error in errors)
    return FRRConfiguration(
        metadata=metadata, spec=FRRConfigurationSpec(node_selector=nodes), invalid=named
    )


def _naming_neighbor(value: Any, error: FieldError) -> FieldError:  # noqa: ANN401  JSON
    """Return an error about a neighbour with its address or interface, and its VRF."""
    place = _NEIGHBOR.match(error.path)
    if place is None:
        return error
    router = value["spec"]["bgp"]["routers"][int(place[1])]
    neighbor = router["neighbors"][int(place[2])]
    if not isinstance(neighbor, dict):
        return error
    end = neighbor.get("address") or neighbor.get("interface")
    if not isinstance(end, str) or not end:
        return error
    vrf = router.get("vrf")
    named = isinstance(vrf, str) and vrf not in ("", "default")
    where = f" in VRF {as_written(vrf)}" if named else ""
    return FieldError(error.path, f"neighbor {as_written(end)}{where}: {error.message}")


def node_selectors(row: FRRConfiguration) -> tuple[LabelSelector, ...]:
    """Return the selector of an object of FRR-k8s's kinds; an invalid one is for all nodes."""
    # Every node reports an invalid selector.
    broken = any(error.path.startswith(SELECTOR) for error in row.invalid)
    return () if broken else (row.spec.node_selector,)


FRR_CONFIGURATION = Kind(
    "FRRConfiguration",
    FRRConfiguration,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    strict=True,
    definition=definitions.FRR_CONFIGURATION,
    table="frr-configurations",
    family=KindFamily(
        others=frozenset({"BGPSessionState", "FRRK8sConfiguration", "FRRNodeState"}),
    ),
    errors=lambda row: strict_selector_errors(row.spec.node_selector, SELECTOR),
    invalid=_invalid,
    of_node=selecting_nodes(node_selectors),
)

FRRK8S_CONFIGURATION = Kind(
    "FRRK8sConfiguration",
    FRRK8sConfiguration,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    strict=True,
    definition=definitions.FRRK8S_CONFIGURATION,
    table="frrk8s-configurations",
)
FRR_NODE_STATE = Kind(
    "FRRNodeState",
    FRRNodeState,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=False,
    definition=definitions.FRR_NODE_STATE,
    table="frr-node-states",
)
BGP_SESSION_STATE = Kind(
    "BGPSessionState",
    BGPSessionState,
    group=GROUP,
    versions=_V1BETA1,
    namespaced=True,
    definition=definitions.BGP_SESSION_STATE,
    table="bgp-session-states",
)

KINDS: Final[tuple[Kind[Any], ...]] = (FRR_CONFIGURATION,)
