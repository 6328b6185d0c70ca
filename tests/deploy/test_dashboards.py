"""Dashboards: their queries select documented metrics, and variables that the dashboard has."""

from __future__ import annotations

import json
import re

from deploy.grafana.generate import choices, dashboards, queries
from tests.cells.observability.test_metrics import documented

BUILT_IN = {"__rate_interval", "datasource"}


def test_queries_select_documented_metrics() -> None:
    known = documented()
    asked = list(queries())
    assert len(asked) > 50
    for where, expression in asked:
        names = re.findall(r"\b((?:waggle|process)_\w+)", expression)
        assert names, where
        for name in names:
            assert name.removesuffix("_bucket") in known, where


def test_choices_select_documented_metrics_and_variables_before_them() -> None:
    known = documented()
    found = list(choices())
    assert [choice.where for choice in found] == [
        *("fleet: $cluster", "node: $cluster", "node: $node"),
        *("peer: $cluster", "peer: $node", "peer: $peer"),
    ]
    earlier: dict[str, set[str]] = {}
    for where, selector, label in found:
        (name,) = re.findall(r"\b((?:waggle|process)_\w+)", selector)
        assert name in known, where
        assert where.endswith(f"${label}")
        of_board = earlier.setdefault(where.partition(":")[0], set())
        assert set(re.findall(r"\$(\w+)", selector)) == of_board
        of_board.add(label)


def test_the_dashboard_defines_its_variables() -> None:
    for name, text in dashboards().items():
        board = json.loads(text)
        variables = {variable["name"] for variable in board["templating"]["list"]}
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(board["panels"])))
        assert used <= variables | BUILT_IN, name


def test_panels_do_not_overlap_and_have_titles_of_their_own() -> None:
    for name, text in dashboards().items():
        panels = json.loads(text)["panels"]
        cells = [
            (x, y)
            for panel in panels
            for position in [panel["gridPos"]]
            for x in range(position["x"], position["x"] + position["w"])
            for y in range(position["y"], position["y"] + position["h"])
        ]
        assert len(cells) == len(set(cells)), name
        titles = [panel["title"] for panel in panels if panel["type"] != "row"]
        assert len(titles) == len(set(titles)), name
        assert max(x for x, _ in cells) < 24


def test_every_metric_of_a_query_is_of_the_chosen_clusters() -> None:
    for where, expression in queries():
        names = re.findall(r"\b(?:waggle|process)_\w+", expression)
        assert expression.count('cluster=~"$cluster"') == len(names), (where, expression)
        assert not re.search(r"(by|on) \(node", expression), where
        if where.startswith("node"):
            # The node is one of several of its name, where Prometheus has several clusters.
            aggregated = re.findall(r"\b(?:sum|max|min|count|topk)\b(.{0,12})", expression)
            assert all(part.startswith(" by (cluster") for part in aggregated), expression
    for text in dashboards().values():
        first, cluster, *others = json.loads(text)["templating"]["list"]
        assert (first["name"], cluster["name"]) == ("datasource", "cluster")
        assert cluster["allValue"] == ".*", "of metrics without the label, too"
        assert all('cluster=~"$cluster"' in other["query"] for other in others)
