"""The item of ``/v1/status``: all members, in a fixed order."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from cells.hive import HealthTree, Readiness
from cells.serve.status import status_item
from reconcilers.dialect import ObjectStatus
from reconcilers.model import Condition, ObjectRef
from reconcilers.unused_objects import UnusedObjects
from speaker.server import PREFIX_TABLE_FORM

SINCE = 1_767_268_800.0
"""2026-01-01T12:00:00Z."""


class Content(msgspec.Struct, frozen=True, rename="camel"):
    """A status of an object."""

    peer_count: int


def item(health: HealthTree, readiness: Readiness, **values: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the item as JSON has it, with nothing but these values."""
    names = ("peers", "rows", "conditions", "problems", "unused", "unrestricted")
    given = {name: values.get(name, ()) for name in names}
    shown: dict[str, Any] = json.loads(
        msgspec.json.encode(status_item("worker-1", readiness, health, **given))
    )
    assert shown.pop("prefixTables") == PREFIX_TABLE_FORM
    return shown


def test_an_agent_that_is_well_and_reports_nothing() -> None:
    assert item(HealthTree(clock=lambda: SINCE), Readiness()) == {
        "node": "worker-1",
        "ready": True,
        "health": "ok",
        "reporting": "there is no API server",
    }


def test_every_member() -> None:
    health, readiness = HealthTree(clock=lambda: SINCE), Readiness()
    readiness.gate("peers", "the initial table of every peer")
    health.scope("report").scope("status").ok("written 3 times")
    health.scope("kubernetes").scope("Service").degraded("forbidden")
    service = ObjectRef("Service", "shop", "web")
    node = ObjectRef("Node", "", "worker-1")
    found = item(
        health,
        readiness,
        peers=[{"name": "tor-1"}],
        rows=[
            ObjectStatus(object=service, uid="u", status=Content(peer_count=2)),
            ObjectStatus(object=node, uid="", status=Content(peer_count=1)),
        ],
        conditions=[
            Condition(object=service, type="B", status=False, reason="R", message="no"),
            Condition(object=node, type="C", status=True, reason="S"),
            Condition(object=node, type="A", status=True, reason="T"),
        ],
        problems=[
            {
                "objects": ["Service/shop/web"],
                "field": "spec",
                "message": "bad",
                "count": 2,
                "ofTenant": True,
            }
        ],
        unused=[
            UnusedObjects("metallb", "MetalLB", (("BGPPeer", 2),), "--enable-cell metallb"),
            UnusedObjects("antrea", "Antrea BGP", (("BGPPolicy", 1),), "--enable-cell antrea"),
        ],
        unrestricted=["any address may be advertised"],
    )
    unused = found.pop("unusedObjects")
    assert [(one["dialect"], one["objects"], one["flag"]) for one in unused] == [
        ("antrea", {"BGPPolicy": 1}, "--enable-cell antrea"),
        ("metallb", {"BGPPeer": 2}, "--enable-cell metallb"),
    ]
    assert all("BGP" in one["message"] for one in unused)
    condition = {"kind": "Node", "name": "worker-1", "status": "True"}
    assert found == {
        "node": "worker-1",
        "ready": False,
        "waiting": ["the initial table of every peer"],
        "health": "degraded",
        "degraded": [
            {
                "path": "kubernetes/Service",
                "message": "forbidden",
                "sinceTime": "2026-01-01T12:00:00Z",
            }
        ],
        "reporting": "written 3 times",
        "peers": [{"name": "tor-1"}],
        "objects": [
            {"kind": "Node", "name": "worker-1", "status": {"peerCount": 1}},
            {"kind": "Service", "namespace": "shop", "name": "web", "status": {"peerCount": 2}},
        ],
        "conditions": [
            {**condition, "type": "A", "reason": "T"},
            {**condition, "type": "C", "reason": "S"},
            {
                "kind": "Service",
                "namespace": "shop",
                "name": "web",
                "type": "B",
                "status": "False",
                "reason": "R",
                "message": "no",
            },
        ],
        "problems": [
            {
                "objects": ["Service/shop/web"],
                "field": "spec",
                "message": "bad",
                "count": 2,
                "ofTenant": True,
            }
        ],
        "unrestricted": ["any address may be advertised"],
    }
