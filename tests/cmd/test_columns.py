"""The columns of all tables: which of them are always shown, and which of them make room first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from waggle import route_columns, sessions
from waggle.commands import bfd, explain, reconcilers, render, status, verify
from waggle.commands.demo import view
from waggle.commands.replay import program as replay
from waggle.tables import Column

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
    ],
)
def test_what_needs_attention_is_not_green(
    columns: Sequence[Column], title: str, good: str, bad: str, style_of_bad: str
) -> None:
    (style,) = (column.style for column in columns if column.title == title)
    assert style is not None
    assert (style(good), style(bad)) == ("green", style_of_bad)
