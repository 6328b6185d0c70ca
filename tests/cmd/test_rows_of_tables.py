"""The cells of each table whose items are small: of an item with all members, and of one with few.

Rows of sessions, routes, explanations, reconcilers and manifests are in `tests.cmd.test_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pytest

from waggle import history, kernel_routes, output
from waggle.commands import (
    bugreport,
    check,
    convert,
    crds,
    docs,
    doctor,
    errors,
    events,
    explain,
    log,
    metrics,
    render,
    schema,
    trace,
)
from waggle.commands.decode import program as decode
from waggle.commands.router import actions
from waggle.fleet import status as fleet_status
from waggle.tables import Column

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
SERVICE: Final = {"kind": "Service", "namespace": "shop", "name": "web"}


def ago(**units: float) -> str:
    return (NOW - timedelta(**units)).isoformat()


class Row(NamedTuple):
    """An item and its cells, by title; cells that are not named are absent: ``-``."""

    columns: Sequence[Column]
    item: Mapping[str, Any]
    cells: Mapping[str, str]


ROWS: Final = {
    "a route of the kernel": Row(
        kernel_routes.COLUMNS,
        {
            "node": "worker-1",
            "table": 254,
            "prefix": "10.0.0.0/8",
            "type": "unicast",
            "nextHops": [{"via": "192.0.2.1"}, {"via": "fe80::1", "interface": "eth1"}],
            "peers": ["tor-1", "tor-2"],
            "origins": [SERVICE, SERVICE],
            "state": "installed",
            "instance": "rack0",
            "metric": 20,
            "message": "of another program",
        },
        {
            "NODE": "worker-1",
            "TABLE": "254",
            "PREFIX": "10.0.0.0/8",
            "NEXT-HOPS": "192.0.2.1 fe80::1%eth1",
            "PEERS": "tor-1 tor-2",
            "ORIGIN-OBJECT": "Service/shop/web +1",
            "STATE": "installed",
            "INSTANCE": "rack0",
            "METRIC": "20",
            "MESSAGE": "of another program",
        },
    ),
    "a route of the kernel without a next hop": Row(
        kernel_routes.COLUMNS,
        {"prefix": "10.0.0.0/8", "type": "blackhole", "state": "failed", "reason": "Refused"},
        {"PREFIX": "10.0.0.0/8", "NEXT-HOPS": "blackhole", "STATE": "Refused"},
    ),
    "a unicast route of the kernel without a next hop": Row(
        kernel_routes.COLUMNS,
        {"prefix": "10.0.0.0/8", "type": "unicast", "state": "pending"},
        {"PREFIX": "10.0.0.0/8", "STATE": "pending"},
    ),
    "the best path of a prefix": Row(
        explain.PATHS,
        {
            "instance": "rack0",
            "prefix": "10.0.0.0/8",
            "peer": "tor-1",
            "nextHop": "192.0.2.1",
            "localPreference": 100,
            "asPath": "65001",
            "med": 0,
            "best": True,
            "status": "best",
        },
        {
            "INSTANCE": "rack0",
            "PREFIX": "10.0.0.0/8",
            "FROM": "tor-1",
            "NEXT-HOP": "192.0.2.1",
            "LP": "100",
            "AS-PATH": "65001",
            "MED": "0",
            "BEST": "yes",
        },
    ),
    "another path of a prefix": Row(
        explain.PATHS,
        {"prefix": "10.0.0.0/8", "peer": "tor-1", "best": False, "status": "longer AS path"},
        {
            "PREFIX": "10.0.0.0/8",
            "FROM": "tor-1",
            "NEXT-HOP": "self",
            "BEST": "no",
            "LOST-BY": "longer AS path",
        },
    ),
    "a kernel route of manifests": Row(
        render.KERNEL_ROUTES,
        {
            "table": 254,
            "prefix": "10.0.0.0/8",
            "type": "unicast",
            "nexthops": [{"via": "192.0.2.1", "dev": None}, {"via": "fe80::1", "dev": "eth1"}],
            "metric": 20,
            "protocol": 186,
        },
        {
            "TABLE": "254",
            "PREFIX": "10.0.0.0/8",
            "NEXT-HOPS": "192.0.2.1 fe80::1%eth1",
            "METRIC": "20",
            "PROTOCOL": "186",
        },
    ),
    "a kernel route of manifests without a next hop": Row(
        render.KERNEL_ROUTES,
        {"prefix": "10.0.0.0/8", "type": "blackhole", "nexthops": []},
        {"PREFIX": "10.0.0.0/8", "NEXT-HOPS": "blackhole"},
    ),
    "a route that the kernel does not get": Row(
        render.NOT_INSTALLED,
        {"prefix": "10.0.0.0/8", "peer": "tor-1", "reason": "Excluded", "message": "by a rule"},
        {
            "PREFIX": "10.0.0.0/8",
            "PEER": "tor-1",
            "NOT-INSTALLED": "Excluded",
            "MESSAGE": "by a rule",
        },
    ),
    "a node that is well": Row(
        fleet_status.COLUMNS,
        {
            "node": "worker-1",
            "ready": True,
            "health": "ok",
            "reporting": "written",
            "peers": [{"name": "tor-1", "state": "Established"}],
        },
        {
            "NODE": "worker-1",
            "READY": "yes",
            "HEALTH": "ok",
            "ESTABLISHED": "1/1",
            "PROBLEMS": "0",
            "STATUS": "written",
        },
    ),
    "a node that is not": Row(
        fleet_status.COLUMNS,
        {
            "node": "worker-2",
            "ready": False,
            "health": "degraded",
            "waiting": ["the first round"],
            "degraded": [{"path": "kubernetes", "message": "no answer"}],
            "problems": [{"objects": [], "field": "spec.asn", "message": "is missing"}],
            "peers": [
                {"name": "tor-1", "state": "Established"},
                {"name": "tor-2", "state": "Idle", "reason": "connection refused"},
                {"name": "tor-3", "state": "Active"},
            ],
        },
        {
            "NODE": "worker-2",
            "READY": "no",
            "HEALTH": "degraded",
            "ESTABLISHED": "1/3",
            "PROBLEMS": "1",
            "MESSAGE": "waits for the first round (and 4 more)",
        },
    ),
    "a node of which a part is degraded": Row(
        fleet_status.COLUMNS,
        {
            "node": "worker-2",
            "health": "degraded",
            "degraded": [{"path": "kubernetes", "message": "no answer"}],
        },
        {
            "NODE": "worker-2",
            "HEALTH": "degraded",
            "ESTABLISHED": "0/0",
            "PROBLEMS": "0",
            "MESSAGE": "kubernetes: no answer",
        },
    ),
    "a node with a session that is down": Row(
        fleet_status.COLUMNS,
        {"node": "w", "health": "ok", "peers": [{"name": "tor-3", "state": "Active"}]},
        {
            "NODE": "w",
            "HEALTH": "ok",
            "ESTABLISHED": "0/1",
            "PROBLEMS": "0",
            "MESSAGE": "tor-3: Active",
        },
    ),
    "a collector": Row(
        actions.collector_columns(NOW),
        {
            "node": "edge-1",
            "name": "lab",
            "address": "192.0.2.9",
            "port": 11019,
            "connected": True,
            "synchronized": True,
            "sinceTime": ago(minutes=5),
            "octetsSent": 4096,
            "queuedOctets": 12,
            "connections": 3,
            "reason": "sent",
        },
        {
            "NODE": "edge-1",
            "COLLECTOR": "lab",
            "ADDRESS": "192.0.2.9",
            "PORT": "11019",
            "STATE": "synchronized",
            "SINCE": "5m",
            "OCTETS": "4096",
            "QUEUED": "12",
            "CONNECTIONS": "3",
            "REASON": "sent",
        },
    ),
    "a collector that gets the table": Row(
        actions.collector_columns(NOW),
        {"name": "lab", "connected": True, "synchronized": False},
        {"COLLECTOR": "lab", "STATE": "table dump"},
    ),
    "a collector that is away": Row(
        actions.collector_columns(NOW),
        {"name": "lab", "connected": False, "synchronized": True},
        {"COLLECTOR": "lab", "STATE": "down"},
    ),
    "an Event": Row(
        events.columns(NOW),
        {
            "lastTime": ago(seconds=12),
            "firstTime": ago(hours=2),
            "type": "Warning",
            "reason": "AddressRefused",
            "object": SERVICE,
            "count": 3,
            "node": "worker-1",
            "message": "the address is used",
        },
        {
            "LAST-SEEN": "12s",
            "TYPE": "Warning",
            "REASON": "AddressRefused",
            "OBJECT": "Service/shop/web",
            "COUNT": "3",
            "FIRST-SEEN": "2h",
            "NODE": "worker-1",
            "MESSAGE": "the address is used",
        },
    ),
    "an Event with few members": Row(
        events.columns(NOW),
        {"object": {"kind": "Node", "name": "worker-1"}},
        {"OBJECT": "Node/worker-1", "COUNT": "1"},
    ),
    "an UPDATE": Row(
        decode.COLUMNS,
        {
            "kind": "update",
            "announce": ["10.0.0.0/8", "10.1.0.0/16"],
            "withdraw": ["10.2.0.0/16", "10.3.0.0/16"],
            "nextHop": "192.0.2.1",
            "asPath": "65001 65002",
            "outcome": "treat as withdraw",
            "endOfRib": "ipv4-unicast",
        },
        {
            "KIND": "update",
            "ANNOUNCE": "10.0.0.0/8,10.1.0.0/16",
            "WITHDRAW": "10.2.0.0/16,10.3.0.0/16",
            "NEXT-HOP": "192.0.2.1",
            "AS-PATH": "65001 65002",
            "OUTCOME": "treat as withdraw",
            "DETAILS": "endOfRib=ipv4-unicast",
        },
    ),
    "an OPEN": Row(
        decode.COLUMNS,
        {"kind": "open", "asn": 65001, "routerID": "10.0.0.1", "holdTime": 90, "version": 4},
        {"KIND": "open", "DETAILS": "asn=65001 routerID=10.0.0.1 holdTime=90"},
    ),
    "a NOTIFICATION": Row(
        decode.COLUMNS,
        {"kind": "notification", "name": "Cease", "shutdownCommunication": "later"},
        {"KIND": "notification", "DETAILS": "name=Cease shutdownCommunication=later"},
    ),
    "a ROUTE-REFRESH": Row(
        decode.COLUMNS,
        {"kind": "route-refresh", "family": "ipv4-unicast", "subtype": "begin"},
        {"KIND": "route-refresh", "DETAILS": "family=ipv4-unicast subtype=begin"},
    ),
    "a line that is no message": Row(
        decode.COLUMNS,
        {"kind": None, "line": 3, "invalid": "an odd number of digits"},
        {"DETAILS": "line 3: an odd number of digits"},
    ),
    "a check": Row(
        doctor.COLUMNS,
        {
            "check": "clock",
            "result": "warning",
            "node": "worker-1",
            "object": "Node/worker-1",
            "evidence": "not synchronized",
            "remedy": "start chrony",
        },
        {
            "CHECK": "clock",
            "RESULT": "warning",
            "NODE": "worker-1",
            "OBJECT": "Node/worker-1",
            "EVIDENCE": "not synchronized",
            "FIX": "start chrony",
        },
    ),
    "a span": Row(
        trace.COLUMNS,
        {
            "after": 0.0105,
            "durationSeconds": 0.005,
            "name": "round",
            "depth": 2,
            "whole": 0.02,
            "links": ["a", "b"],
            "attributes": {
                "waggle.objects": ["Service/shop/web", "Node/w"],
                "bgp.peer": "tor-1",
                "rounds": 2,
            },
        },
        {
            "AFTER": "10.50ms",
            "TOOK": "5.00ms",
            "SPAN": "+--- round (of 2 causes)",
            "TIMELINE": "..........=====",
            "DETAILS": "peer=tor-1 rounds=2 objects=Service/shop/web,Node/w",
        },
    ),
    "a span of no time": Row(
        trace.COLUMNS,
        {"after": 0.0, "durationSeconds": 0.0, "name": "read", "depth": 0, "whole": 0.0},
        {"AFTER": "0.00ms", "TOOK": "0.00ms", "SPAN": "read", "TIMELINE": "="},
    ),
    "a span at the end": Row(
        trace.COLUMNS,
        {"after": 0.02, "durationSeconds": 0.02, "name": "sent", "depth": 1, "whole": 0.02},
        {
            "AFTER": "20.00ms",
            "TOOK": "20.00ms",
            "SPAN": "+- sent",
            "TIMELINE": f"{'.' * 19}=",
        },
    ),
    "a metric": Row(
        metrics.COLUMNS,
        {
            "name": "waggle_sessions",
            "labels": {"instance": "rack0", "peer": "tor-1"},
            "value": 1767225600.5,
            "type": "gauge",
            "description": "Sessions.",
        },
        {
            "NAME": "waggle_sessions",
            "LABELS": "instance=rack0 peer=tor-1",
            "VALUE": "1767225600.5",
            "TYPE": "gauge",
            "DESCRIPTION": "Sessions.",
        },
    ),
    "a metric without labels": Row(
        metrics.COLUMNS, {"name": "waggle_up", "value": 10.0}, {"NAME": "waggle_up", "VALUE": "10"}
    ),
    "a reason": Row(
        errors.COLUMNS,
        {"reason": "NoEndpoint", "topic": "routes", "meaning": "none is ready", "remedy": "wait"},
        {
            "REASON": "NoEndpoint",
            "OF": "routes",
            "MEANING": "none is ready",
            "REMEDY": "wait",
        },
    ),
    "a definition": Row(
        crds.COLUMNS,
        {
            "metadata": {"name": "bgppeers.metallb.io"},
            "spec": {
                "names": {"kind": "BGPPeer"},
                "scope": "Namespaced",
                "versions": [{"name": "v1beta1"}, {"name": "v1beta2"}],
            },
        },
        {
            "NAME": "bgppeers.metallb.io",
            "KIND": "BGPPeer",
            "SCOPE": "Namespaced",
            "VERSIONS": "v1beta1,v1beta2",
        },
    ),
    "a converted object": Row(
        convert.COLUMNS,
        {
            "apiVersion": "metallb.io/v1beta2",
            "kind": "BGPPeer",
            "metadata": {"namespace": "metallb-system", "name": "tor-1"},
        },
        {
            "API": "metallb.io/v1beta2",
            "KIND": "BGPPeer",
            "NAMESPACE": "metallb-system",
            "NAME": "tor-1",
        },
    ),
    "a converted object without a name": Row(
        convert.COLUMNS, {"kind": "BGPPeer", "metadata": {}}, {"KIND": "BGPPeer"}
    ),
    "a problem of manifests": Row(
        check.COLUMNS,
        {
            "objects": ["BGPPeer/tor-1", "BGPPeer/tor-2"],
            "field": "spec.asn",
            "message": "is missing",
            "nodes": ["worker-1", "worker-2", "worker-3", "worker-4"],
        },
        {
            "OBJECTS": "BGPPeer/tor-1, BGPPeer/tor-2",
            "FIELD": "spec.asn",
            "MESSAGE": "is missing",
            "NODES": "nodes worker-1, worker-2, worker-3 and 1 more",
        },
    ),
    "a log level": Row(
        log.COLUMNS,
        {"level": "debug", "chosen": False, "setBy": ["frrk8s", "metallb"], "configured": "info"},
        {"LEVEL": "debug", "SET-BY": "frrk8s,metallb", "CONFIGURED": "info"},
    ),
    "a log level of a command": Row(
        log.COLUMNS,
        {"level": "debug", "chosen": True, "setBy": ["frrk8s"], "configured": "info"},
        {"LEVEL": "debug", "SET-BY": "waggle log", "CONFIGURED": "info"},
    ),
    "a log level of the configuration": Row(
        log.COLUMNS,
        {"level": "info", "chosen": False, "configured": "info"},
        {"LEVEL": "info", "SET-BY": "configuration", "CONFIGURED": "info"},
    ),
    "a file of a report": Row(
        bugreport.COLUMNS,
        {"name": "history.json", "octets": 12, "error": "no answer"},
        {"FILE": "history.json", "OCTETS": "12", "ERROR": "no answer"},
    ),
    "a schema": Row(
        schema.COLUMNS,
        {"kind": "PeerList", "schema": {"$id": "urn:peers"}},
        {"KIND": "PeerList", "ID": "urn:peers"},
    ),
    "a page": Row(docs.COLUMNS, {"name": "bfd", "title": "BFD"}, {"PAGE": "bfd", "TITLE": "BFD"}),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_row_of(name: str) -> None:
    columns, item, cells = ROWS[name]
    absent = {column.title: "-" for column in columns}
    row = output.row(columns, item)
    assert {c.title: cell for c, cell in zip(columns, row, strict=True)} == absent | dict(cells)


@pytest.mark.parametrize(
    ("item", "cells"),
    [
        (
            {
                "node": "worker-1",
                "type": "MODIFIED",
                "kind": "Service",
                "name": "shop/web",
                "changes": [
                    {"field": "spec.a", "old": "1", "new": "2"},
                    {"field": "spec.b", "new": "3"},
                    {"field": "spec.c", "old": "4"},
                    {"field": "7 more fields"},
                ],
                "message": "of a user",
                "count": 2,
                "causes": ["Node/w", "Node/v"],
                "routeSet": "services",
            },
            {
                "NODE": "worker-1",
                "TYPE": "MODIFIED",
                "OBJECT": "Service/shop/web",
                "CHANGE": "spec.a: 1 -> 2; spec.b: 3; spec.c: 4 -> none; 7 more fields; of a user "
                "(2 times)",
                "CAUSE": "Node/w, Node/v",
                "ROUTE-SET": "services",
            },
        ),
        (
            {"type": "DELETED", "kind": "Service", "name": "web", "changes": [{"field": "a"}]},
            {"TYPE": "DELETED", "OBJECT": "Service/web"},
        ),
        (
            {"type": "ADDED", "kind": "Route", "message": "routes", "count": 3},
            {"TYPE": "ADDED", "OBJECT": "Route", "CHANGE": "3 routes"},
        ),
        (
            {"type": "ADDED", "kind": "Route", "name": "10.0.0.0/8", "message": "sent", "count": 1},
            {"TYPE": "ADDED", "OBJECT": "Route/10.0.0.0/8", "CHANGE": "sent"},
        ),
    ],
)
def test_the_row_of_a_change(item: dict[str, Any], cells: dict[str, str]) -> None:
    at = {"eventTime": ago()}
    row = dict(
        zip((c.title for c in history.COLUMNS), output.row(history.COLUMNS, item | at), strict=True)
    )
    time = row.pop("TIME")
    assert time == NOW.astimezone().strftime("%Y-%m-%d %H:%M:%S.000")
    absent = {column.title: "-" for column in history.COLUMNS if column.title != "TIME"}
    assert row == absent | cells
    assert history.line(item | at) == "  ".join(
        filter(
            None,
            (
                time,
                f"{cells['TYPE']:<8}",
                cells["OBJECT"],
                cells.get("CHANGE"),
                f"<- {cells['CAUSE']}" if "CAUSE" in cells else "",
            ),
        )
    )


def test_what_is_gone_is_red_and_what_is_new_is_green() -> None:
    assert [history.type_style(kind) for kind in ("ADDED", "DELETED", "MODIFIED")] == [
        "green",
        "red",
        "",
    ]
