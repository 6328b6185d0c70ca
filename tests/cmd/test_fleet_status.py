"""``waggle status --all-nodes``: the row of each node, the gravest first."""

from __future__ import annotations

from typing import Any

from waggle import output
from waggle.fleet.status import COLUMNS, _of_statuses, _order

Item = dict[str, Any]


def session(state: str = "Established", **members: str) -> Item:
    return {"name": "tor", "state": state, **members}


def node(name: str, **members: Any) -> Item:  # noqa: ANN401  JSON
    return {"node": name, "health": "ok", **members}


def cells(item: Item) -> dict[str, str]:
    row = output.row(COLUMNS, item)
    return {column.title: cell for column, cell in zip(COLUMNS, row, strict=True)}


def test_nodes_that_are_not_ready_come_first_then_degraded_ones_sessions_and_problems() -> None:
    down = session("Idle")
    expected = [
        node("not-ready", ready=False),
        node("degraded", ready=True, health="degraded"),
        node("unknown", health="unknown"),
        node("two-down", ready=True, peers=[down, down, session()]),
        node("down", ready=True, peers=[down, session()]),
        node("problems", ready=True, problems=[{}, {}]),
        node("problem", ready=True, problems=[{}]),
        node("a", ready=True),
        node("b"),
        node("c", ready=True, peers=[session()]),
    ]
    for given in (expected, expected[::-1]):
        assert [item["node"] for item in sorted(given, key=_order)] == [
            item["node"] for item in expected
        ]


def test_a_row_has_what_is_wrong_the_gravest_first() -> None:
    problem = {"objects": ["Service/shop/web"], "field": "", "message": "no"}
    degraded = {"path": "kernel", "message": "no NET_ADMIN"}
    item = node(
        "n1",
        ready=False,
        health="degraded",
        waiting=["the first list"],
        degraded=[degraded],
        problems=[problem],
        peers=[session(), session("Idle", reason="refused")],
    )
    expected = {
        "NODE": "n1",
        "READY": "no",
        "HEALTH": "degraded",
        "ESTABLISHED": "1/2",
        "PROBLEMS": "1",
        "STATUS": "-",
        "MESSAGE": "waits for the first list (and 3 more)",
    }
    assert cells(item) == expected
    causes = ("waiting", "degraded", "problems", "peers")
    texts = ["kernel: no NET_ADMIN (and 2 more)", "Service/shop/web: no (and 1 more)"]
    for gone, text in zip(causes, [*texts, "tor: refused", "-"], strict=True):
        del item[gone]
        assert cells(item)["MESSAGE"] == text
    assert cells(node("n1", ready=True))["READY"] == "yes"


def test_a_node_of_which_only_status_objects_are_known_names_them() -> None:
    one = session(source="BGPSessionState")
    other = session("Idle", source="CiliumBGPNodeConfig")
    (item,) = _of_statuses("n1", [other, one])
    assert cells(item) == {
        "NODE": "n1",
        "READY": "-",
        "HEALTH": "unknown",
        "ESTABLISHED": "1/2",
        "PROBLEMS": "0",
        "STATUS": "from BGPSessionState and 1 more",
        "MESSAGE": "tor: Idle",
    }
    (item,) = _of_statuses("n1", [one, one])
    assert cells(item)["STATUS"] == "from BGPSessionState"
