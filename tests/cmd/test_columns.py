"""The columns of all tables: which of them are always shown, and which of them make room first."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from waggle import history, kernel_routes, route_columns, sessions
from waggle.commands import (
    bfd,
    bugreport,
    check,
    completion,
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
    router,
    schema,
    status,
    trace,
    verify,
)
from waggle.commands.decode import program as decode
from waggle.commands.demo import view
from waggle.commands.replay import program as replay
from waggle.commands.router import actions
from waggle.fleet import status as fleet_status
from waggle.tables import Column

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PEERS, RECONCILERS = sessions.columns(NOW), reconcilers.columns(NOW)
COLLECTORS, EVENTS = actions.collector_columns(NOW), events.columns(NOW)


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
            wide="INSTANCE PROFILE LOCAL-INTERVALS REMOTE-INTERVALS PACKETS-IN/OUT "
            "ECHO-IN/OUT LONGEST-GAP LATENESS UPS AUTH DISCRIMINATORS",
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
        "paths of a prefix": Shown(
            explain.PATHS,
            always="PREFIX FROM NEXT-HOP LP AS-PATH MED BEST LOST-BY",
            wide="INSTANCE",
            right="LP MED",
            room="LOST-BY AS-PATH NEXT-HOP PREFIX",
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
        "routes of the kernel": Shown(
            kernel_routes.COLUMNS,
            always="NODE TABLE PREFIX NEXT-HOPS PEERS ORIGIN-OBJECT STATE",
            wide="INSTANCE METRIC MESSAGE",
            right="TABLE METRIC",
            room="NODE* MESSAGE* PEERS ORIGIN-OBJECT NEXT-HOPS PREFIX",
        ),
        "changes": Shown(
            history.COLUMNS,
            always="TIME TYPE OBJECT CHANGE CAUSE",
            wide="NODE ROUTE-SET",
            room="CAUSE CHANGE",
        ),
        "nodes": Shown(
            fleet_status.COLUMNS,
            always="NODE READY HEALTH ESTABLISHED PROBLEMS MESSAGE",
            wide="STATUS",
            right="ESTABLISHED PROBLEMS",
            room="MESSAGE PROBLEMS* STATUS",
        ),
        "collectors of the router": Shown(
            COLLECTORS,
            always="NODE COLLECTOR ADDRESS PORT STATE SINCE OCTETS QUEUED REASON",
            wide="CONNECTIONS",
            right="PORT SINCE OCTETS QUEUED CONNECTIONS",
            room="REASON NODE* ADDRESS PORT*",
        ),
        "Events": Shown(
            EVENTS,
            always="LAST-SEEN TYPE REASON OBJECT COUNT MESSAGE",
            wide="FIRST-SEEN NODE",
            right="LAST-SEEN COUNT FIRST-SEEN",
            room="MESSAGE OBJECT COUNT*",
        ),
        "decoded messages": Shown(
            decode.COLUMNS,
            always="KIND ANNOUNCE WITHDRAW NEXT-HOP AS-PATH OUTCOME DETAILS",
            room="DETAILS AS-PATH NEXT-HOP WITHDRAW ANNOUNCE",
        ),
        "checks of the doctor": Shown(
            doctor.COLUMNS,
            always="CHECK RESULT NODE OBJECT EVIDENCE FIX",
            room="FIX EVIDENCE NODE* OBJECT",
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
            room="LABELS DESCRIPTION",
        ),
        "reasons": Shown(
            errors.COLUMNS, always="REASON OF MEANING REMEDY", room="REMEDY MEANING OF*"
        ),
        "definitions": Shown(
            crds.COLUMNS, always="NAME KIND SCOPE VERSIONS", room="KIND* VERSIONS* SCOPE*"
        ),
        "converted objects": Shown(
            convert.COLUMNS, always="API KIND NAMESPACE NAME", room="API NAMESPACE*"
        ),
        "problems of manifests": Shown(
            check.COLUMNS,
            always="OBJECTS FIELD MESSAGE NODES",
            room="MESSAGE FIELD NODES OBJECTS",
        ),
        "log levels": Shown(log.COLUMNS, always="LEVEL SET-BY CONFIGURED"),
        "files of a report": Shown(
            bugreport.COLUMNS, always="FILE OCTETS ERROR", right="OCTETS", room="ERROR"
        ),
        "checked configurations of a router": Shown(
            router.CHECKED_COLUMNS,
            always="FILE ASN ROUTER-ID NEIGHBORS PREFIXES",
            right="ASN NEIGHBORS PREFIXES",
        ),
        "schemas": Shown(schema.COLUMNS, always="KIND ID", room="ID"),
        "completions": Shown(completion.COLUMNS, always="SHELL FILE COMMAND", room="FILE COMMAND"),
        "pages": Shown(docs.COLUMNS, always="PAGE TITLE", room="TITLE"),
    }


def test_no_table_of_the_code_is_missing() -> None:
    listed = [table.columns for table in tables().values()]
    for module in (module for name, module in sys.modules.items() if name.startswith("waggle.")):
        for name, value in vars(module).items():
            is_part = name.startswith("_")
            if not is_part and isinstance(value, tuple) and value and isinstance(value[0], Column):
                assert value in listed, f"{module.__name__}.{name}"


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
def test_only_an_established_session_is_green(state: str, style: str) -> None:
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
        (fleet_status.COLUMNS, "READY", "yes", "no", "red"),
        (fleet_status.COLUMNS, "HEALTH", "ok", "degraded", "yellow"),
        (COLLECTORS, "STATE", "up", "down", "red"),
        (doctor.COLUMNS, "RESULT", "ok", "error", "red"),
        (doctor.COLUMNS, "RESULT", "ok", "warning", "yellow"),
        (doctor.COLUMNS, "RESULT", "ok", "skipped", "dim"),
    ],
)
def test_what_needs_attention_is_not_green(
    columns: Sequence[Column], title: str, good: str, bad: str, style_of_bad: str
) -> None:
    (style,) = (column.style for column in columns if column.title == title)
    assert style is not None
    assert (style(good), style(bad)) == ("green", style_of_bad)


def test_a_warning_is_yellow_and_an_outcome_is_red() -> None:
    (of_event,) = (column.style for column in EVENTS if column.title == "TYPE")
    (of_message,) = (column.style for column in decode.COLUMNS if column.title == "OUTCOME")
    assert of_event is not None
    assert of_message is not None
    assert (of_event("Warning"), of_event("Normal")) == ("yellow", "")
    (of_path,) = (column.style for column in explain.PATHS if column.title == "BEST")
    assert of_path is not None
    assert (of_path("yes"), of_path("no")) == ("green", "")
    assert of_message("session reset") == "red"
