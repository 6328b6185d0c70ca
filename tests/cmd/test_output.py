"""H50 and the manners of a terminal: tables, colours, JSON, ages."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cells.test_safe_text import HOSTILE
from tests.cmd.terminal import Terminal
from tests.support import plain_yaml
from waggle import output
from waggle.tables import Column

COLUMNS = (
    Column("PEER", itemgetter(0)),
    Column("STATE", itemgetter(1), style=lambda s: "green" if s == "Established" else "red"),
    Column("SENT", itemgetter(2), right=True),
    Column("FLAPS", itemgetter(3), wide=True, right=True),
)


def drawn(
    rows: list[list[str]],
    stream: io.StringIO | None = None,
    *,
    wide: bool = False,
    color: str = "auto",
    headers: bool = True,
) -> str:
    stream = stream or io.StringIO()
    args = argparse.Namespace(
        output="wide" if wide else "table", color=color, no_headers=not headers
    )
    output.table(COLUMNS, rows, args, stream=stream)
    return stream.getvalue()


def test_piped_tables_are_plain_aligned_and_complete() -> None:
    long_name = "x" * 300
    assert drawn([["tor-1", "Established", "2", "0"], [long_name, "Idle", "-", "11"]]) == (
        f"{'PEER':300}  STATE        SENT\n"
        f"{'tor-1':300}  Established     2\n"
        f"{long_name}  Idle            -\n"
    )


def test_wide_shows_all_columns_in_order() -> None:
    assert drawn([["tor-1", "Idle", "-", "3"]], wide=True).splitlines() == [
        "PEER   STATE  SENT  FLAPS",
        "tor-1  Idle      -      3",
    ]


def test_an_empty_cell_is_a_dash() -> None:
    assert drawn([["tor-1", "", "", ""]]).splitlines()[1] == "tor-1  -         -"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("terminal", [True, False])
def test_h50_hostile_text_in_a_table_is_harmless(name: str, terminal: bool) -> None:
    text, safe = HOSTILE[name]
    stream = Terminal() if terminal else io.StringIO()
    shown = drawn([[text, "Idle", "0", "0"]], stream, color="never")
    assert safe in shown
    assert len(shown.splitlines()) == 2
    assert all(line.isprintable() for line in shown.split("\n"))


@given(st.text(st.characters()))
def test_h50_json_is_escaped_and_complete(text: str) -> None:
    shown = output.safe_json({"reason": text}, indent=2)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert json.loads(shown) == {"reason": text}


def test_colours_repeat_words_and_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    row = [["tor-1", "Established", "2", "0"]]
    assert "\x1b[32m" in drawn(row, color="always")
    assert "\x1b" not in drawn(row)
    terminal, pipe = Terminal(), io.StringIO()
    assert output.use_color("auto", terminal, {"TERM": "xterm"})
    assert not output.use_color("auto", terminal, {"TERM": "xterm", "NO_COLOR": "1"})
    assert not output.use_color("auto", terminal, {"TERM": "dumb"})
    assert not output.use_color("auto", pipe, {"TERM": "xterm"})
    assert output.use_color("always", pipe, {"NO_COLOR": "1"})
    assert not output.use_color("never", terminal, {"TERM": "xterm"})


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    shown = drawn([["x" * 100, "Idle", "-", "0"]], Terminal(), color="never")
    lines = shown.splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
        "PEER",
        "STATE",
        "SENT",
    ]
    assert "".join(lines).count("x") == 100


def test_titles_can_be_left_out() -> None:
    rows = [["tor-1", "Idle", "2", "0"]]
    assert drawn(rows, headers=False) == "tor-1  Idle  2\n"
    assert drawn(rows, Terminal(), headers=False, color="never") == "tor-1  Idle  2\n"


def test_addresses_are_in_order_of_their_numbers() -> None:
    texts = ["eth0", "fe80::1%eth0", "10.0.0.10", "2001:db8::1", "10.0.0.9", "9.0.0.0/8"]
    assert sorted(texts, key=output.address_order) == [
        "9.0.0.0/8", "10.0.0.9", "10.0.0.10", "2001:db8::1", "fe80::1%eth0", "eth0",
    ]  # fmt: skip


def test_json_and_yaml_have_the_same_items() -> None:
    answer = output.document("PeerList", [{"name": "a"}, {"name": "b"}])
    streams = {form: io.StringIO() for form in ("json", "jsonl", "yaml")}
    for form, stream in streams.items():
        output.dump(answer, form, stream)
    assert json.loads(streams["json"].getvalue()) == answer
    assert streams["jsonl"].getvalue() == '{"name": "a"}\n{"name": "b"}\n'
    assert plain_yaml.load(streams["yaml"].getvalue())["items"] == answer["items"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (312, "5m12s"), (3600, "1h"), (11220, "3h7m"),
     (86400, "1d"), (90000, "1d1h"), (864000, "10d"), (90000000, "1041d"), (-5, "0s")],
)  # fmt: skip
def test_ages_have_the_form_of_kubectl(seconds: int, expected: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert output.age(now - timedelta(seconds=seconds), now) == expected


def test_an_unknown_age_is_a_dash() -> None:
    assert output.age(None, datetime(2026, 1, 1, tzinfo=UTC)) == "-"


def test_a_table_begins_before_its_last_row_is_there() -> None:
    stream = io.StringIO()
    lines = []

    def rows() -> Iterator[list[str]]:
        for number in range(2 * output.GROUP_ROWS):
            lines.append(stream.getvalue().count("\n"))
            yield [f"tor-{number}", "Idle", "-", "0"]

    args = argparse.Namespace(output="table", color="auto", no_headers=False)
    output.table(COLUMNS, rows(), args, stream=stream)
    assert set(lines) == {0, 1 + output.GROUP_ROWS}
    assert stream.getvalue().count("\n") == 1 + 2 * output.GROUP_ROWS


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


# Few keys: the parser of YAML takes a millisecond for each.
FIELDS = st.dictionaries(st.text(max_size=8), VALUES, max_size=3)


@given(st.lists(FIELDS, max_size=4), FIELDS)
def test_an_answer_that_is_printed_item_by_item_is_one_document(
    items: list[Any], rest: dict[str, Any]
) -> None:
    answer = {"kind": "RouteList", "errors": [], "items": items}
    answer |= {key: value for key, value in rest.items() if key not in answer}
    streams = {form: io.StringIO() for form in ("json", "yaml")}
    for form, stream in streams.items():
        output.dump(answer, form, stream)
    assert streams["json"].getvalue() == output.safe_json(answer, indent=2) + "\n"
    assert plain_yaml.load(streams["yaml"].getvalue()) == answer


def test_scripts_know_the_exit_statuses_by_their_numbers() -> None:
    assert (output.EXIT_OK, output.EXIT_ERROR, output.EXIT_USAGE) == (0, 1, 2)
    assert (output.EXIT_NOT_FOUND, output.EXIT_INTERRUPTED, output.EXIT_PIPE) == (4, 130, 141)
    assert output.API_VERSION == "cli.waggle/v1"
    assert output.FORMATS == ("table", "wide", "json", "jsonl", "yaml")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", '{\n  "a": [\n    1,\n    "é"\n  ],\n  "b": null\n}\n'),
        ("jsonl", '{"a": [1, "é"], "b": null}\n'),
        ("yaml", 'a:\n- 1\n- "\\xE9"\nb: null\n'),
        ("jsonpath={.a[0]}", "1"),
    ],
)
def test_a_document_that_is_no_list_of_items(form: str, text: str) -> None:
    stream = io.StringIO()
    output.dump_value({"a": [1, "é"], "b": None}, form, stream)
    assert stream.getvalue() == text


@pytest.mark.parametrize(("days", "text"), [(9.9, "9d21h"), (10.0, "10d"), (10.9, "10d")])
def test_from_ten_days_on_hours_are_omitted(days: float, text: str) -> None:
    assert output.duration(days * 86_400) == text
