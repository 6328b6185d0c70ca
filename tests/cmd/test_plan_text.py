"""The lines of a plan: each kind of change with its symbol, its word, its fields and its peers."""

from __future__ import annotations

from typing import Any

import pytest

from waggle.commands.plan.text import STYLES, changes, lines

Json = dict[str, Any]
FIELD: Json = {"name": "holdTime", "before": 90, "after": 30}


def session(change: str, **members: Any) -> Json:  # noqa: ANN401  JSON
    return {"instance": "main", "peer": "tor", "change": change, **members}


@pytest.mark.parametrize(
    ("instance", "line"),
    [
        ({"change": "add"}, ("+", "instance main")),
        ({"change": "remove"}, ("-", "instance main")),
        (
            {"change": "recreate", "fields": [FIELD]},
            ("!", "instance main is recreated, all of its sessions reset: holdTime 90 -> 30"),
        ),
        ({"change": "update", "message": "why"}, ("~", "instance main stays up: why")),
    ],
)
def test_the_change_of_an_instance(instance: Json, line: tuple[str, str]) -> None:
    assert list(changes({"instances": [{"name": "main", **instance}]})) == [line]


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (session("add", routes=1), ("+", "session main/tor, 1 route")),
        (session("remove"), ("-", "session main/tor, 0 routes")),
        (
            session("reset", address="192.0.2.1", routes=2),
            ("!", "session main/tor (192.0.2.1) resets"),
        ),
        (session("replace"), ("!", "session main/tor is replaced by another peer")),
        (session("stop"), ("-", "session main/tor ends and stays down")),
        (session("start"), ("+", "session main/tor starts")),
        (
            session("update", fields=[FIELD, {"name": "password", "before": "x", "after": "x"}]),
            ("~", "session main/tor stays up: holdTime 90 -> 30, password changes"),
        ),
    ],
)
def test_the_change_of_a_session(item: Json, line: tuple[str, str]) -> None:
    assert list(changes({"sessions": [item]})) == [line]


def test_the_changes_of_routes_and_of_routes_in_the_kernel() -> None:
    route = {"prefix": "198.51.100.0/24", "instance": "main", "change": "advertise"}
    origins = {"origins": ["Service/shop/web", "Service/shop/db"]}
    med = {"fields": [{"name": "med", "before": None, "after": [5]}]}
    kernel = {"prefix": "10.0.0.0/8", "table": 254, "change": "install"}
    item = {
        "routes": [
            {**route, "peer": "tor-1", **origins},
            {**route, "peer": "tor-2", **origins},
            {**route, "peer": "tor-3", "change": "withdraw"},
            {**route, "peer": "tor-4", "change": "update", **med},
        ],
        "kernel": [kernel, {**kernel, "change": "update", **med}, {**kernel, "change": "remove"}],
    }
    assert list(changes(item)) == [
        ("+", "route 198.51.100.0/24 (Service/shop/web and 1 more) to main/tor-1, main/tor-2"),
        ("-", "route 198.51.100.0/24 from main/tor-3"),
        ("~", "route 198.51.100.0/24 to main/tor-4: med none -> [5]"),
        ("+", "kernel route 10.0.0.0/8 in table 254"),
        ("~", "kernel route 10.0.0.0/8 in table 254: med none -> [5]"),
        ("-", "kernel route 10.0.0.0/8 in table 254"),
    ]


def test_the_lines_of_a_plan_have_styles_and_the_numbers_of_all_changes() -> None:
    problem = {"objects": ["Service/shop/web"], "field": "spec", "message": "no", "nodes": ["n1"]}
    answer = {
        "items": [{"nodes": ["n1"], "sessions": [session("reset"), session("add")]}],
        "problems": [
            {**problem, "change": "new"},
            {**problem, "change": "solved"},
            {**problem, "change": "remains"},
        ],
        "summary": {
            "sessions": {"add": 1, "reset": 1, "replace": 2, "stop": 3, "start": 4, "remove": 5,
                         "update": 6},
            "routes": {"advertise": 1, "update": 2, "withdraw": 3},
            "kernel": {"install": 1, "update": 2, "remove": 3},
            "changedNodes": 1,
            "nodes": 2,
        },
    }  # fmt: skip
    assert list(lines(answer)) == [
        ("", "on node n1:"),
        ("red", "  ! session main/tor resets"),
        ("green", "  + session main/tor, 0 routes"),
        ("red", "! problem: Service/shop/web: spec: no (node n1)"),
        ("green", "+ solved: Service/shop/web: spec: no (node n1)"),
        (
            "",
            (
                "Plan: 1 session to add, 1 to reset, 2 to replace, 3 to stop, 4 to start, 5 to remove, "
                "6 to update; 1 route to advertise, 2 to update, 3 to withdraw; 1 kernel route to "
                "install, 2 to update, 3 to remove; 1 new problem, on 1 of 2 nodes."
            ),
        ),
    ]
    assert STYLES == {"+": "green", "-": "red", "!": "red", "~": "yellow"}


@pytest.mark.parametrize(
    ("count", "last"),
    [
        (50, None),
        (51, "and 1 more route; -o json has all"),
        (52, "and 2 more routes; -o json has all"),
    ],
)
def test_fifty_routes_of_a_node_are_listed(count: int, last: str | None) -> None:
    routes = [
        {"prefix": f"10.0.{n}.0/24", "instance": "main", "peer": "tor", "change": "advertise"}
        for n in range(count)
    ]
    listed = list(changes({"routes": routes}))
    assert [text for _, text in listed[50:]] == ([] if last is None else [last])
    assert len(listed) == min(count, 51)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "none"),
        (["a", "b"], "a,b"),
        (["a", 1], '["a", 1]'),
        ("é" * 60, "é" * 60),
        ("é" * 61, "é" * 59 + "…"),
        ({"ä": True}, '{"ä": true}'),
    ],
)
def test_a_value_is_a_short_text(value: object, text: str) -> None:
    field = {"name": "f", "before": None, "after": value}
    ((_, line),) = changes({"sessions": [session("update", fields=[field])]})
    assert line == f"session main/tor stays up: f none -> {text}"
