"""Panels, variables and the frame of a dashboard, as all dashboards have them."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders.common import ReduceDataOptions
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

TAG: Final = "waggle"
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
CLUSTER: Final = 'cluster=~"$cluster"'
"""Of Prometheus with several clusters; series without the label have it with the value of All."""
_SELECTOR: Final = re.compile(r"\b((?:waggle|process)_\w+)(?:\{([^}]*)\})?")

Panel: TypeAlias = "stat.Panel | table.Panel | timeseries.Panel"
Query: TypeAlias = tuple[str, str]
"""PromQL, and the legend of its series."""


def frame(uid: str, title: str, text: str) -> dashboard.Dashboard:
    """Return an empty dashboard with the choice of a source, and links to the others."""
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(text)
        .tags([TAG])
        .readonly()
        .refresh("30s")
        .time("now-1h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Waggle")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .keep_time(True)
            .include_vars(True)
        )
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Source").type("prometheus")
        )
        .with_variable(
            choice("cluster", "Cluster", "label_values(waggle_build_info, cluster)", every=True)
        )
    )


def of_cluster(expression: str) -> str:
    """Return PromQL with the metrics of the chosen clusters, with the nodes of each apart."""

    def selected(match: re.Match[str]) -> str:
        name, labels = match.groups()
        return f"{name}{{{', '.join(filter(None, (CLUSTER, labels)))}}}"

    return re.sub(r"\b(by|on) \(node", r"\1 (cluster, node", _SELECTOR.sub(selected, expression))


def choice(name: str, label: str, query: str, *, every: bool = False) -> dashboard.QueryVariable:
    """Return a variable with the values of a label."""
    variable = (
        dashboard.QueryVariable(name)
        .label(label)
        .query(query if name == "cluster" else of_cluster(query))
        .datasource(SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(every)
        .include_all(every)
    )
    if every:
        every_value = VariableOption(text="All", value="$__all", selected=True)
        variable = variable.all_value(".*").current(every_value)
    return variable


def lines(
    title: str, *queries: Query, unit: str = "short", width: int = 12, text: str = ""
) -> timeseries.Panel:
    """Return a panel over time."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(8)
        .min(0)
        .fill_opacity(10)
    )
    for expression, legend in queries:
        panel = panel.with_target(
            prometheus.Dataquery().expr(of_cluster(expression)).legend_format(legend).range()
        )
    return panel


def number(
    title: str,
    expression: str,
    *,
    unit: str = "short",
    bad_from: float | None = None,
    width: int = 4,
    text: str = "",
) -> stat.Panel:
    """Return a single number, red from a value on."""
    steps = [Threshold(value=None, color="green")]
    if bad_from is not None:
        steps.append(Threshold(value=bad_from, color="red"))
    return (
        stat.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(4)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .with_target(prometheus.Dataquery().expr(of_cluster(expression)).instant())
    )


def rows(title: str, expression: str, *labels: str, value: str, text: str = "") -> table.Panel:
    """Return a table: a row for each series, with these labels and its value."""
    order = {name: place for place, name in enumerate((*labels, "Value"))}
    return (
        table.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .span(12)
        .height(8)
        .with_target(
            prometheus.Dataquery()
            .expr(of_cluster(expression))
            .instant()
            .format(PromQueryFormat.TABLE)
        )
        .with_transformation(
            DataTransformerConfig(
                id_val="filterFieldsByName", options={"include": {"names": [*order]}}
            )
        )
        .with_transformation(
            DataTransformerConfig(
                id_val="organize",
                options={"indexByName": order, "renameByName": {"Value": value}},
            )
        )
    )
