"""Tables on a terminal: texts are wrapped, names are whole, and no column is dropped unsaid."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cmd.terminal import ROOT, Terminal, run_in_terminal
from waggle import history, output, route_columns, sessions
from waggle.__main__ import main
from waggle.commands import explain, metrics, status
from waggle.tables import Column, Layout, fitted, plain, text_width, wrap

PEERS = sessions.columns(datetime.now(UTC))
PEER = [
    "worker-1", "tor-1", "192.0.2.1", "4200000001", "65001", "OpenConfirm", "3d5h", "Up", "v4,v6",
    "120,12", "1200,12", "default", "192.0.2.1", "90/30", "7/9", "0", "none", "-",
    "route-refresh", "4s", "-",
    "connection refused by the peer, perhaps for a wrong password (retry in 12s)", "-",
]  # fmt: skip
EXPLAINED = [
    "default", "tor-1", "198.51.100.10/32", "Service/shop/web", "LoadBalancerIP", "no",
    "NoLocalEndpoint", "CiliumBGPAdvertisement/services",
    "externalTrafficPolicy is Local, and no endpoint of the Service is ready on this node",
]  # fmt: skip
ADVERTISED = [
    "worker-1", "tor-1", "2001:db8:100:200::10/128", "2001:db8::1", "Service/shop/web", "65000:80",
    "100/-", "3d5h", "default", "65000", "-",
]  # fmt: skip
RECEIVED = [
    "worker-1", "tor-1", "2001:db8:100:200::10/128", "2001:db8::1", "65000 65001 65002",
    "AlwaysBlock 2001:db8:100::/40", "2001:db8::/32 ge 48 le 128",
    "FRRConfiguration/frr-k8s-system/tor-1", "default", "-", "-", "-",
]  # fmt: skip
AVAILABLE = [
    "worker-1", "2001:db8:100:200::10/128", "2001:db8::1", "frontend/tor-1", "no",
    "65000 65001 65002 65003", "longer AS path", "default", "-", "-", "-",
]  # fmt: skip
DECIDED = [
    "default", "tor-1", "2001:db8:100:200::10/128", "yes", "no", "AlwaysBlock",
    "AlwaysBlock 2001:db8:100::/40", "FRRConfiguration/frr-k8s-system/tor-1",
    "never accepted: FRRConfiguration/frr-k8s-system/tor-1 has 2001:db8:100::/40 in alwaysBlock",
]  # fmt: skip
CONDITION = [
    "CiliumBGPClusterConfig/production-cluster", "cilium.io/BGPReconcileError", "True",
    "peer tor-1 is not configured: there is no CiliumBGPPeerConfig production-peer-config",
]  # fmt: skip


LONG_NAME = "a-top-of-rack-switch-with-a-long-name-in-row-17-rack-9"


def words(lines: list[str]) -> str:
    return "".join("".join(lines).split())


def narrow(columns: tuple[Column, ...], row: list[str], width: int) -> list[str]:
    shown = [at for at, column in enumerate(columns) if not column.wide]
    (found, *note) = fitted(
        [columns[at] for at in shown],
        [[[row[at] for at in shown]]],
        Layout(),
        width=width,
        complete=False,
    )
    found += [line for lines in note for line in lines]
    assert all(text_width(line) <= width for line in found)
    return found


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize(
    ("columns", "row", "may_be_left_out"),
    [
        (PEERS, PEER, {"NODE", "BFD", "FAMILIES", "LOCAL-AS"}),
        (explain.COLUMNS, EXPLAINED, set()),
        (explain.RECEIVED, DECIDED, set()),
        (route_columns.COLUMNS["advertised"], ADVERTISED, {"NODE", "AGE"}),
        (route_columns.COLUMNS["received"], RECEIVED, {"NODE"}),
        (route_columns.COLUMNS["available"], AVAILABLE, {"NODE"}),
        (status.CONDITIONS, CONDITION, set()),
    ],
)
def test_no_word_is_broken_and_no_important_column_left_out(
    columns: tuple[Column, ...], row: list[str], may_be_left_out: set[str], width: int
) -> None:
    lines = narrow(columns, row, width)
    note = " ".join(line for line in lines if line.startswith("(") or line.endswith(")"))
    left_out = {title for title in may_be_left_out if f"{title}," in note or f"{title}:" in note}
    assert ("not shown at this width" in note) is bool(left_out)
    shown = {word for line in lines for word in line.split()}
    for column, value in zip(columns, row, strict=True):
        if not column.wide and column.title not in left_out:
            assert column.title in shown
            assert {
                part for word in value.split() for part in re.findall("[^,]*,|[^,]+", word)
            } <= {part for word in shown for part in re.findall("[^,]*,|[^,]+", word)}


def test_a_long_name_does_not_make_a_block_of_each_row() -> None:
    shown = [at for at, column in enumerate(PEERS) if not column.wide]
    columns = [PEERS[at] for at in shown]
    row = [PEER[at] for at in shown]
    long = [row[0], LONG_NAME, "2001:db8::1", *row[3:]]
    (lines, _) = fitted(columns, [[row, long]], Layout(), width=80, complete=False)
    assert lines[0].split() == ["PEER", "STATE", "SINCE"]
    assert lines[1].split() == ["tor-1", "OpenConfirm", "3d5h"]
    at_long = lines.index(next(line for line in lines if line.startswith("a-top")))
    assert [line.split()[0] for line in lines[at_long + 1 :]][:4] == [
        "ADDRESS",
        "PEER-AS",
        "RECV",
        "SENT",
    ]


def test_a_text_without_room_in_its_column_stands_beneath_its_row() -> None:
    shown = [at for at, column in enumerate(explain.COLUMNS) if not column.wide]
    columns = [explain.COLUMNS[at] for at in shown]
    why = [EXPLAINED[at] for at in shown]
    fine = ["tor-2", *why[1:4], "yes", "Advertised", "-"]
    (lines,) = fitted(columns, [[why, fine]], Layout(), width=80, complete=False)
    assert lines == [
        "PEER   PREFIX            OBJECT            ADVERTISED  REASON",
        "tor-1  198.51.100.10/32  Service/shop/web  no          NoLocalEndpoint",
        "  TYPE  LoadBalancerIP",
        "  WHY   externalTrafficPolicy is Local, and no endpoint of the Service is ready",
        "        on this node",
        "tor-2  198.51.100.10/32  Service/shop/web  yes         Advertised",
        "  TYPE  LoadBalancerIP",
    ]
    (lines,) = fitted(columns, [[why, fine]], Layout(), width=120, complete=False)
    assert [line[:50].split() for line in lines] == [
        ["PEER", "PREFIX", "OBJECT", "TYPE"],
        ["tor-1", "198.51.100.10/32", "Service/shop/web", "LoadBal"],
        [],
        [],
        ["tor-2", "198.51.100.10/32", "Service/shop/web", "LoadBal"],
    ]


def test_a_terminal_too_narrow_for_the_columns_has_a_block_for_each_row() -> None:
    lines = narrow(PEERS, [PEER[0], LONG_NAME, *PEER[2:]], 40)
    titles = [column.title for column in PEERS if not column.wide]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == titles
    assert words(lines[-3:]).endswith("awrongpassword(retryin12s)")


def test_wide_leaves_nothing_out() -> None:
    (lines,) = fitted(PEERS, [[PEER, PEER]], Layout(), width=80, complete=True)
    assert lines.count("") == 1
    for column, value in zip(PEERS, PEER, strict=True):
        assert column.title in words(lines)
        assert words([value]) in words(lines)


def test_numbers_and_states_are_not_broken() -> None:
    columns = (
        Column("NAME", str),
        Column("STATE", str, style=lambda _: ""),
        Column("N", str, right=True),
    )
    rows = [["two words", "Established", "1234567"]]
    (lines,) = fitted(columns, [rows], Layout(), width=28, complete=True)
    assert [" ".join(line.split()) for line in lines] == [
        "NAME STATE N",
        "two Established 1234567",
        "words",
    ]


def test_the_first_group_decides_on_the_layout_of_a_terminal() -> None:
    columns = (Column("NAME", str), Column("NOTE", str, minor=1), Column("N", str, right=True))
    first = [["tor-1", "x" * 30, "1"], ["tor-2", "-", "22"]]
    groups = [first, [["the-longest-name-of-all", "y", "3"]], []]
    found = list(fitted(columns, groups, Layout(), width=20, complete=False))
    assert found[0] == ["NAME    N", "tor-1   1", "tor-2  22"]
    assert found[1][0] == "the-    3"
    assert words(found[1]) == "the-3longest-name-of-all"
    assert found[2] == []
    assert words(found[3]).startswith("(NOTE:notshown")
    blocks = list(fitted(columns, groups, Layout(), width=20, complete=True))
    assert ["" in lines for lines in blocks] == [True, True, False]
    assert words(blocks[1]) == "NAMEthe-longest-name-of-allNOTEyN3"


def test_a_column_of_a_later_group_grows_where_no_terminal_limits_it() -> None:
    columns = (Column("NAME", str), Column("N", str, right=True))
    groups = [[["a", "1"]], [["longest", "2"], ["b", "3"]], [["c", "4"]]]
    assert list(plain(columns, groups, Layout())) == [
        ["NAME  N", "a     1"],
        ["longest  2", "b        3"],
        ["c        4"],
    ]


@given(st.text(st.characters(exclude_categories=("C", "Z"))), st.integers(2, 30))
def test_a_wrapped_text_is_whole_and_fits(text: str, width: int) -> None:
    lines = wrap(f"{text} {text}", width)
    assert all(text_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text + text


def test_a_long_word_is_broken_where_it_has_parts() -> None:
    assert wrap("Service/production/frontend", 20) == ["Service/production/", "frontend"]


def test_a_real_terminal_of_80_columns_shows_peer_state_and_reason() -> None:
    command = ["render", "-f", "examples/quickstart", "--node", "node-1", "-o", "table"]
    shown = run_in_terminal(["waggle", *command], columns=80)
    assert shown.status == 0
    assert all(len(line) <= 80 for line in shown.text.splitlines())
    explained = run_in_terminal(
        ["waggle", "explain", "--all", "-f", "examples/quickstart", "--node", "node-1", "--color",
         "never"],
        columns=80,
    )  # fmt: skip
    # A machine that needs long shows the time for a while, and erases it.
    lines = [line.rpartition("\x1b[K")[2] for line in explained.text.splitlines()]
    assert all(len(line) <= 80 for line in lines)
    shown_titles = {word for line in lines for word in line.split()}
    assert {column.title for column in explain.COLUMNS if not column.wide} <= shown_titles


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("tor-1", 5), ("é", 1), ("e\u0301", 1), ("日本", 4), ("ｱ", 1), ("\uff21", 2)],
)
def test_a_text_takes_two_columns_for_each_wide_character(text: str, columns: int) -> None:
    assert text_width(text) == columns


@pytest.mark.parametrize(
    ("command", "note"),
    [
        (
            "crds cilium -o table",
            "KIND: not shown at this width; a wider terminal shows all columns",
        ),
        (
            "render -f examples/metallb --node node-1 -o table",
            "ROUTER-ID: not shown at this width; -o wide shows all columns",
        ),
    ],
)
def test_hidden_columns_are_shown_by_a_format_that_the_command_has(
    command: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(ROOT)
    assert main([*command.split(), "--no-pager", "--color=never"]) == 0
    assert f"({note})\n" in terminal.getvalue()


def test_samples_that_differ_by_their_labels_have_them_on_a_narrow_terminal() -> None:
    labels = {"instance": "main", "peer": "tor-1", "peer_address": "192.0.2.1", "from": "OpenSent"}
    row = output.row(
        metrics.COLUMNS,
        {"name": "waggle_bgp_session_transitions_total", "labels": labels, "value": 1},
    )
    shown = narrow(metrics.COLUMNS, row, 60)
    assert words(shown).endswith("LABELSinstance=mainpeer=tor-1peer_address=192.0.2.1from=OpenSent")


def test_the_time_of_a_change_is_in_one_line() -> None:
    item = {
        "eventTime": "2026-01-01T12:00:00.123Z",
        "type": "MODIFIED",
        "kind": "Session",
        "name": "main/tor-1",
        "message": "state: OpenConfirm -> Established, after a long time without a connection",
        "causes": ["CiliumBGPNodeConfig/worker-1"],
    }
    first = narrow(history.COLUMNS, output.row(history.COLUMNS, item), 80)[1]
    assert first.split()[1:] == [history.time_of(item).split()[1], "MODIFIED", "Session/main/tor-1"]


def test_a_coloured_cell_at_the_end_of_a_line_has_no_blanks_behind_it() -> None:
    columns = (Column("N", str), Column("STATE", str, style=lambda _: "red"))
    (lines,) = plain(columns, [[["1", "ok"]]], Layout(color=True))
    assert lines == ["N  STATE", "1  \x1b[31mok\x1b[0m"]
