"""The metric of OVN-Kubernetes' cluster manager for networks with dynamic allocation.

`reconcilers.dialect.ConditionMetric` has the metrics of conditions. Source: OVN-Kubernetes,
``go-controller/pkg/metrics/cluster_manager.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import CompatMetric, CompatMetrics, OperatorMetricsContext
from reconcilers.ovnk.operate import State

if TYPE_CHECKING:
    from reconcilers.ovnk.dialect import OvnkDialect

METRICS: Final = "ovnkube_clustermanager_"


def of_operator(
    _dialect: OvnkDialect, context: OperatorMetricsContext
) -> Iterator[CompatMetric | None]:
    """Yield OVN-Kubernetes' metric of the number of nodes of each network, for its dashboards."""
    state: State = context.state or State()
    yield CompatMetric(
        f"{METRICS}udn_nodes_rendered",
        "gauge",
        "Nodes that a network is on",
        ("network_name",),
        [((name,), count) for name, count in sorted(state.nodes_of_networks.items())],
    )


COMPAT_METRICS: Final = CompatMetrics(operator=of_operator)
