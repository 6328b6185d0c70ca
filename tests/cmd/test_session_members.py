"""A member of a session is a field and a column: the page and ``waggle top`` read the same members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from cells.api.model import PeerMembers
from cells.serve.items import INTERNAL
from speaker.api import PeerStatus
from tests.cmd.test_top import BEFORE, NOW, process, session
from waggle.commands.schema.schemas import _status, schema
from waggle.sessions import columns
from waggle.tables import Column
from waggle.top_screen import SHOWN, Reading, lines

ROOT: Final = Path(__file__).resolve().parents[2]
COLUMNS: Final = {column.title: column for column in columns(NOW)}
MEMBERS: Final = schema("PeerList")["$defs"]["PeerItem"]["properties"].keys()
NO_COLUMN: Final = {
    "updatesReceived": "waggle top",
    "updatesSent": "waggle top",
    "queuedOctets": "waggle top",
    "malformed": "a note below the table",
    "malformedUpdates": "a note below the table",
    "stale": "JSON: while the peer restarts",
    "receivedByType": "JSON: parts of MSG-IN/OUT",
    "sentByType": "JSON: parts of MSG-IN/OUT",
    "dynamic": "JSON",
    "source": "JSON: where no agent answers",
    "statusTime": "JSON: where no agent answers",
}
"""Members that no column of ``waggle peers`` has, and where they are."""
ON_THE_PAGE: Final = {
    "Node": "NODE",
    "Peer": "PEER",
    "Address": "ADDRESS",
    "AS": "PEER-AS",
    "State": "STATE",
    "Since": "SINCE",
    "BFD": "BFD",
    "Received": "RECV",
    "Advertised": "SENT",
    "Flaps": "FLAPS",
}
"""Titles of the page -> titles of ``waggle peers`` with the same members."""
ON_THE_PAGE_ALONE: Final = {
    "Updates in": {"updatesReceived"},
    "out": {"updatesSent"},
    "Reason": {"state", "reason", "likelyCause", "malformed"},
}


class Recording(Mapping[str, Any]):
    """A session that records which of its members are read."""

    def __init__(self, **members: Any) -> None:  # noqa: ANN401  JSON
        self.read = set[str]()
        self._members = members

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  JSON
        self.read.add(name)
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def read_by(column: Column) -> set[str]:
    """Return the members that a cell reads, of a session that is down or up."""
    down = Recording(state="Idle", families=[])
    up = Recording(
        state="Established",
        families=["ipv4-unicast"],
        sinceTime=NOW.isoformat(),
        holdSeconds=9.0,
        messagesReceived=1,
    )
    for item in (down, up):
        column.cell(item)
    return down.read | up.read


def columns_of_the_page() -> dict[str, set[str]]:
    """Return the members that each column of the page's sessions reads."""
    text = (ROOT / "cells/page/static/page.js").read_text()
    node = re.search(r'const node = column\("Node", \(item\) => item\.(\w+)\)', text)
    listed = re.search(r"const SESSIONS = \[\n    node,\n(.*?)\n  \];", text, re.DOTALL)
    assert node
    assert listed
    return {"Node": {node[1]}} | {
        title: set(re.findall(r"\bof\.(\w+)", cell))
        for title, cell in re.findall(r'column\("([^"]+)", (.*)\),', listed[1])
    }


def test_each_member_of_a_session_has_a_column_or_a_place_of_its_own() -> None:
    read = set[str]().union(*map(read_by, COLUMNS.values()))
    assert MEMBERS - read == NO_COLUMN.keys()
    assert read <= MEMBERS


def test_a_new_field_is_in_the_schema_without_another_line() -> None:
    class Later(PeerStatus, frozen=True, kw_only=True, rename="camel"):
        idle_time: float | None = msgspec.field(name="idleSeconds", default=None)

    fields = msgspec.structs.fields(_status("PeerItem", Later, PeerMembers))
    assert {field.encode_name for field in fields} - MEMBERS == {"idleSeconds"}


def test_a_member_that_is_no_field_of_the_speakers_status_is_one_of_the_api() -> None:
    def names(struct: type[msgspec.Struct]) -> set[str]:
        return {field.encode_name for field in msgspec.structs.fields(struct)}

    hidden = {f.encode_name for f in msgspec.structs.fields(PeerStatus) if f.name in INTERNAL}
    assert {"node"} | names(PeerStatus) - hidden | names(PeerMembers) == MEMBERS


def test_the_page_reads_the_members_of_the_same_columns() -> None:
    page = columns_of_the_page()
    assert page.keys() == ON_THE_PAGE.keys() | ON_THE_PAGE_ALONE.keys()
    for title, of_peers in ON_THE_PAGE.items():
        assert page[title] == read_by(COLUMNS[of_peers]), title
    for title, members in ON_THE_PAGE_ALONE.items():
        assert page[title] == members <= MEMBERS, title


def test_top_reads_members_of_sessions_and_shows_the_columns_of_waggle_peers() -> None:
    sessions = [Recording(**session("tor-1", up=up)) for up in (True, False)]
    now = Reading(12.0, NOW, process(1.5), sessions, [])
    table = [text.split() for text, _ in lines(now, BEFORE, 120, 20)[2:5]]
    assert table[0][: len(SHOWN)] == list(SHOWN)
    for text, item in zip(table[1:], reversed(sessions), strict=True):
        assert text[: len(SHOWN)] == [COLUMNS[title].cell(item) for title in SHOWN]
        assert item.read <= MEMBERS
    tops = {member for member, place in NO_COLUMN.items() if place == "waggle top"}
    assert tops <= set[str]().union(*(item.read for item in sessions))
