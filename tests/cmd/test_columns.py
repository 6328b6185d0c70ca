"""The columns of all tables: which of them are always shown, and which of them make room first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from waggle import history, kernel_routes, route_columns, sessions
from waggle.commands import (
    bfd,
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
    reconcilers,
    render,
    schema,
    status,
    trace,
    verify,
)
from waggle.commands.decode import program as decode
from waggle.commands.demo import view
from waggle.commands.replay import program as replay
from waggle.commands.router import actions
from waggle.fleet import status as fleet
from waggle.tables import Column

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PEERS, RECONCILERS = sessions.columns(NOW), reconcilers.columns(NOW)


class Shown(NamedTuple):
    """What users see of a table."""

    columns: Sequence[Column]
    always: str
    """Titles in order."""
    wide: str = ""
    """Titles that ``-o wide`` adds."""
    right: str = ""
    """Titles of numbers and times, which are aligned to the right."""
    room: str = ""
    """Titles in the order in which they make room on a narrow terminal: by a line beneath the row,
    with ``*`` by being dropped."""


def tables() -> dict[str, Shown]:
    """Return all tables, by what their rows are."""
    return {
        "sessions": Shown(
            PEERS,
            always="NODE PEER ADDRESS LOCAL-AS PEER-AS STATE SINCE BFD FAMILIES RECV SENT REASON",
            wide="INSTANCE ROUTER-ID HOLD/KA MSG-IN/OUT FLAPS AUTH GR CAPABILITIES NEXT-RETRY "
            "LAST-ERROR LIKELY-CAUSE",
            right="LOCAL-AS PEER-AS SINCE RECV SENT FLAPS NEXT-RETRY",
            room="LIKELY-CAUSE LAST-ERROR REASON NODE* BFD* FAMILIES* LOCAL-AS* ADDRESS PEER-AS RECV "
            "SENT CAPABILITIES",
        ),
        "BFD sessions": Shown(
            bfd.columns(NOW),
            always="NODE PEER ADDRESS STATE REMOTE SINCE INTERVAL DETECTION HOPS DIAGNOSTIC PROBLEM",
            wide="INSTANCE PROFILE LOCAL-INTERVALS REMOTE-INTERVALS PACKETS-IN/OUT ECHO-IN/OUT "
            "LONGEST-GAP LATENESS UPS AUTH DISCRIMINATORS",
            right="SINCE INTERVAL DETECTION PACKETS-IN/OUT ECHO-IN/OUT LONGEST-GAP LATENESS UPS",
            room="DIAGNOSTIC PROBLEM NODE* HOPS* INTERVAL* ADDRESS",
        ),
        "explanations": Shown(
            explain.COLUMNS,
            always="PEER PREFIX OBJECT TYPE ADVERTISED REASON WHY",
            wide="INSTANCE RULE",
            room="WHY RULE TYPE OBJECT REASON PREFIX",
        ),
        "explanations of received routes": Shown(
            explain.RECEIVED,
            always="PEER PREFIX RECEIVED ACCEPTED REASON FILTER OBJECT WHY",
            wide="INSTANCE",
            room="WHY OBJECT FILTER RECEIVED REASON PREFIX",
        ),
        "advertised routes": Shown(
            route_columns.COLUMNS["advertised"],
            always="NODE PEER PREFIX NEXT-HOP ORIGIN-OBJECT COMMUNITIES LP/MED AGE",
            wide="INSTANCE AS-PATH LARGE",
            right="AGE",
            room="NODE* AGE* LP/MED COMMUNITIES ORIGIN-OBJECT NEXT-HOP PREFIX",
        ),
        "received routes": Shown(
            route_columns.COLUMNS["received"],
            always="NODE PEER PREFIX NEXT-HOP AS-PATH STATUS FILTER OBJECT",
            wide="INSTANCE COMMUNITIES LARGE LP/MED",
            room="NODE* OBJECT FILTER AS-PATH NEXT-HOP STATUS PREFIX",
        ),
        "available routes": Shown(
            route_columns.COLUMNS["available"],
            always="NODE PREFIX NEXT-HOP FROM BEST AS-PATH STATUS",
            wide="INSTANCE COMMUNITIES LARGE LP/MED",
            room="NODE* STATUS AS-PATH NEXT-HOP",
        ),
        "reconcilers": Shown(
            RECONCILERS,
            always="ORDER RECONCILER TARGET NEEDS OBJECTS ERRORS WAITING DRIFTED LAST-RUN DURATION",
            wide="SUMMARY",
            right="ORDER OBJECTS ERRORS WAITING DRIFTED LAST-RUN DURATION",
            room="DURATION* TARGET* ORDER* NEEDS* SUMMARY",
        ),
        "drift": Shown(
            verify.COLUMNS,
            always="RECONCILER OBJECT MISSING UNEXPECTED DIFFERENT REPAIRED DETAILS",
            right="MISSING UNEXPECTED DIFFERENT",
            room="DETAILS OBJECT",
        ),
        "peers of manifests": Shown(
            render.PEERS,
            always="PEER ADDRESS LOCAL-AS PEER-AS ROUTER-ID FAMILIES ROUTES",
            wide="LOCAL-ADDRESS HOLD/KA/RETRY AUTH GR ACCEPT",
            right="LOCAL-AS PEER-AS ROUTES",
            room="ROUTER-ID* LOCAL-AS* ADDRESS",
        ),
        "routes of manifests": Shown(
            render.ROUTES,
            always="PEER PREFIX NEXT-HOP COMMUNITIES LP ORIGIN-OBJECT",
            wide="ORIGIN",
            right="LP",
            room="ORIGIN-OBJECT LP COMMUNITIES NEXT-HOP PREFIX",
        ),
        "conditions": Shown(
            status.CONDITIONS,
            always="OBJECT CONDITION STATUS MESSAGE",
            room="MESSAGE STATUS CONDITION",
        ),
        "actions of a recording": Shown(
            replay.actions(0.0),
            always="SEQ TIME INPUT PEER ACTION DETAIL",
            right="SEQ TIME",
            room="DETAIL INPUT",
        ),
        "agents": Shown(
            fleet.COLUMNS,
            always="NODE READY HEALTH ESTABLISHED PROBLEMS MESSAGE",
            wide="STATUS",
            right="ESTABLISHED PROBLEMS",
            room="MESSAGE PROBLEMS* STATUS",
        ),
        "routes in the kernel": Shown(
            kernel_routes.COLUMNS,
            always="NODE TABLE PREFIX NEXT-HOPS PEERS ORIGIN-OBJECT STATE",
            wide="INSTANCE METRIC MESSAGE",
            right="TABLE METRIC",
            room="NODE* MESSAGE* PEERS ORIGIN-OBJECT NEXT-HOPS PREFIX",
        ),
        "kernel routes of manifests": Shown(
            render.KERNEL_ROUTES,
            always="TABLE PREFIX NEXT-HOPS",
            wide="METRIC PROTOCOL",
            right="TABLE METRIC PROTOCOL",
            room="NEXT-HOPS",
        ),
        "routes that the kernel does not get": Shown(
            render.NOT_INSTALLED,
            always="PREFIX PEER NOT-INSTALLED MESSAGE",
            room="MESSAGE PEER",
        ),
        "paths of an explanation": Shown(
            explain.PATHS,
            always="PREFIX FROM NEXT-HOP LP AS-PATH MED BEST LOST-BY",
            wide="INSTANCE",
            right="LP MED",
            room="LOST-BY AS-PATH NEXT-HOP PREFIX",
        ),
        "changes": Shown(
            history.COLUMNS,
            always="TIME TYPE OBJECT CHANGE CAUSE",
            wide="NODE ROUTE-SET",
            room="CAUSE CHANGE",
        ),
        "Events": Shown(
            events.columns(NOW),
            always="LAST-SEEN TYPE REASON OBJECT COUNT MESSAGE",
            wide="FIRST-SEEN NODE",
            right="LAST-SEEN COUNT FIRST-SEEN",
            room="MESSAGE OBJECT COUNT*",
        ),
        "spans": Shown(
            trace.COLUMNS,
            always="AFTER TOOK SPAN TIMELINE DETAILS",
            right="AFTER TOOK",
            room="DETAILS TIMELINE*",
        ),
        "metrics": Shown(
            metrics.COLUMNS,
            always="NAME LABELS VALUE",
            wide="TYPE DESCRIPTION",
            right="VALUE",
            room="LABELS* DESCRIPTION",
        ),
        "log levels": Shown(log.COLUMNS, always="LEVEL SET-BY CONFIGURED"),
        "checks of the doctor": Shown(
            doctor.COLUMNS,
            always="CHECK RESULT NODE OBJECT EVIDENCE FIX",
            room="FIX EVIDENCE NODE* OBJECT",
        ),
        "problems of manifests": Shown(
            check.COLUMNS,
            always="OBJECTS FIELD MESSAGE NODES",
            room="MESSAGE FIELD NODES OBJECTS",
        ),
        "converted objects": Shown(
            convert.COLUMNS,
            always="API KIND NAMESPACE NAME",
            room="API NAMESPACE*",
        ),
        "definitions": Shown(
            crds.COLUMNS,
            always="NAME KIND SCOPE VERSIONS",
            room="KIND* VERSIONS* SCOPE*",
        ),
        "messages": Shown(
            decode.COLUMNS,
            always="KIND ANNOUNCE WITHDRAW NEXT-HOP AS-PATH OUTCOME DETAILS",
            room="DETAILS AS-PATH NEXT-HOP WITHDRAW ANNOUNCE",
        ),
        "reasons": Shown(
            errors.COLUMNS,
            always="REASON OF MEANING REMEDY",
            room="REMEDY MEANING OF*",
        ),
        "files of a bug report": Shown(
            bugreport.COLUMNS, always="FILE OCTETS ERROR", right="OCTETS", room="ERROR"
        ),
        "pages": Shown(docs.COLUMNS, always="PAGE TITLE", room="TITLE"),
        "schemas": Shown(schema.COLUMNS, always="KIND ID", room="ID"),
        "monitoring stations": Shown(
            actions.collector_columns(NOW),
            always="NODE COLLECTOR ADDRESS PORT STATE SINCE OCTETS QUEUED REASON",
            wide="CONNECTIONS",
            right="PORT SINCE OCTETS QUEUED CONNECTIONS",
            room="REASON NODE* ADDRESS PORT*",
        ),
        "sessions of the demo": Shown(
            view.SESSIONS,
            always="PEER AS STATE REASON",
            right="AS",
            room="REASON",
        ),
        "routes of the demo": Shown(
            view.ROUTES,
            always="PREFIX NEXT-HOP AS-PATH COMMUNITIES ORIGIN-OBJECT",
            room="ORIGIN-OBJECT COMMUNITIES NEXT-HOP",
        ),
    }


def titles(columns: Sequence[Column]) -> str:
    return " ".join(column.title for column in columns)


@pytest.mark.parametrize("name", tables())
def test_the_columns_of_a_table(name: str) -> None:
    table = tables()[name]
    assert titles([column for column in table.columns if not column.wide]) == table.always
    assert titles([column for column in table.columns if column.wide]) == table.wide
    assert titles([column for column in table.columns if column.right]) == table.right
    minor = sorted((column for column in table.columns if column.minor), key=lambda one: one.minor)
    left_out = [f"{column.title}{'' if column.beneath else '*'}" for column in minor]
    assert " ".join(left_out) == table.room
    numbers = {column.minor for column in minor}
    assert numbers == set(range(1, len(numbers) + 1))


def declared() -> Iterator[list[str]]:
    """Yield the titles of each table in the modules of the program."""
    for path in sorted((ROOT / "cmd" / "waggle").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            columns = _columns(node.elts) if isinstance(node, ast.Tuple | ast.List) else []
            if columns:
                yield columns


def _columns(elements: Sequence[ast.expr]) -> list[str]:
    return [
        ast.literal_eval(call.args[0])
        for call in elements
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Column"
    ]


def test_every_table_is_described_here() -> None:
    described = [{column.title for column in table.columns} for table in tables().values()]
    described.append({"NODE", "ROUTES"})  # the numbers of routes of `waggle routes --count`
    found = list(declared())
    assert len(found) >= len(described)
    for row in found:
        assert any(table.issuperset(row) for table in described), row


@pytest.mark.parametrize(
    ("state", "style"),
    [
        ("Established", "green"),
        ("Idle", "red"),
        ("Connect", "yellow"),
        ("Active", "yellow"),
        ("OpenSent", "yellow"),
        ("OpenConfirm", "yellow"),
        ("Disabled", "dim"),
    ],
)
def test_a_session_that_is_up_is_green_and_one_that_is_down_is_not(state: str, style: str) -> None:
    for columns in (PEERS, view.SESSIONS):
        (column,) = (column for column in columns if column.title == "STATE")
        assert column.style is not None
        assert column.style(state) == style


@pytest.mark.parametrize(
    ("columns", "title", "good", "bad", "style_of_bad"),
    [
        (explain.COLUMNS, "ADVERTISED", "yes", "no", "yellow"),
        (explain.RECEIVED, "ACCEPTED", "yes", "no", "yellow"),
        (RECONCILERS, "ERRORS", "0", "1", "red"),
        (verify.COLUMNS, "REPAIRED", "yes", "no", "red"),
        (fleet.COLUMNS, "READY", "yes", "no", "red"),
        (fleet.COLUMNS, "HEALTH", "ok", "degraded", "yellow"),
        (doctor.COLUMNS, "RESULT", "ok", "error", "red"),
        (doctor.COLUMNS, "RESULT", "ok", "warning", "yellow"),
        (actions.collector_columns(NOW), "STATE", "synchronized", "down", "red"),
    ],
)
def test_what_needs_attention_is_not_green(
    columns: Sequence[Column], title: str, good: str, bad: str, style_of_bad: str
) -> None:
    (style,) = (column.style for column in columns if column.title == title)
    assert style is not None
    assert (style(good), style(bad)) == ("green", style_of_bad)


@pytest.mark.parametrize(
    ("columns", "title", "usual", "special", "style"),
    [
        (explain.PATHS, "BEST", "no", "yes", "green"),
        (events.columns(NOW), "TYPE", "Normal", "Warning", "yellow"),
        (doctor.COLUMNS, "RESULT", "unknown", "skipped", "dim"),
    ],
)
def test_only_what_stands_out_has_a_style(
    columns: Sequence[Column], title: str, usual: str, special: str, style: str
) -> None:
    (style_of,) = (column.style for column in columns if column.title == title)
    assert style_of is not None
    assert (style_of(usual), style_of(special)) == ("", style)
