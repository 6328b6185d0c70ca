"""``-o jsonpath=``: the expressions of kubectl's documentation, on a list of sessions."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cells.api.test_client import answering, http
from waggle.__main__ import main
from waggle.jsonpath import InvalidTemplate, Template

PEERS: dict[str, Any] = {
    "kind": "PeerList",
    "items": [
        {"name": "tor-1", "state": "Established", "peerASN": 65001, "families": ["v4", "v6"],
         "received": [{"family": "v4", "routes": 3}]},
        {"name": "tor-2", "state": "Idle", "peerASN": 65002, "families": ["v4"], "a.b": True},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.kind}", "PeerList"),
        (".kind", "PeerList"),
        ("kind", "PeerList"),
        ("{$.kind}", "PeerList"),
        ("{.items[*].name}", "tor-1 tor-2"),
        ("{.items[0].name}", "tor-1"),
        ("{.items[-1].name}", "tor-2"),
        ("{.items[1:].name}", "tor-2"),
        ("{.items[0:2:1].peerASN}", "65001 65002"),
        ("{.items[0]['name']}", "tor-1"),
        ("{.items[0]['name', 'state']}", "tor-1 Established"),
        ("{.items[0, 1].name}", "tor-1 tor-2"),
        (r"{.items[1]['a\.b']}", "true"),
        (r"{.items[1].a\.b}", "true"),
        ("{.items[0].families}", '["v4","v6"]'),
        ("{.items[*].families[0]}", "v4 v4"),
        ("{..routes}", "3"),
        ("{.items[0].received[*].*}", "v4 3"),
        ('{.items[?(@.state=="Established")].name}', "tor-1"),
        ("{.items[?(@.state != 'Established')].name}", "tor-2"),
        ("{.items[?(@.peerASN > 65001)].name}", "tor-2"),
        ("{.items[?(@.received)].name}", "tor-1"),
        ("{.items[?(@.a\\.b==true)].name}", "tor-2"),
        ("{.items[?(@.name=='}]')].name}", ""),
        ("{.items[?(@.name < 5)].name}", ""),
        ("{.nothing}", ""),
        ("{.items[9].name}", ""),
        ("peers: {.items[*].name}.", "peers: tor-1 tor-2."),
        (
            r'{range .items[*]}{.name}{"\t"}{.peerASN}{"\n"}{end}',
            "tor-1\t65001\ntor-2\t65002\n",
        ),
        ("{range .items[*]}{range .families[*]}{@}{end}{', '}{end}", "v4v6, v4, "),
        ("{range .items[*]}{@.name}/{$.kind} {end}", "tor-1/PeerList tor-2/PeerList "),
    ],
)
def test_an_expression(template: str, text: str) -> None:
    assert Template(template).render(PEERS) == text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("", "the template is empty"),
        ("{.items", "a { is not closed"),
        ("{end}", "{end} without {range}"),
        ("{range .items[*]}", "{range} without {end}"),
        ("{.items[x]}", "[x]: no index, slice, 'name', * or ?(filter) with a ]"),
        ("{.items[::0]}", "[::0]: a step of 0"),
        ('{"\\q"}', '"\\q" is not a text: \\ has the escapes of JSON'),
        ("{}", "{}: no expression, such as .items[*].name"),
        ("{range .}" * 5000 + "{end}" * 5000, "more than 50 ranges and filters"),
        ("{.a" + "[?(@" * 5000 + ")]" * 5000 + "}", "more than 50 ranges and filters"),
        ("{" + "..*" * 40 + "}", "more than 3 times .. in an expression"),
        ("{.items[" + "9" * 5000 + "]}", "a number has too many digits"),
        ("{.items[?(@.a==" + "9" * 5000 + ")]}", "a number has too many digits"),
        ('{"\\ud800"}', '"\\ud800" is not a text: \\ has the escapes of JSON'),
        ("{.a}\udcff", "the template is not UTF-8"),
    ],
)
def test_what_cannot_be_parsed(template: str, message: str) -> None:
    with pytest.raises(InvalidTemplate) as caught:
        Template(template)
    assert str(caught.value) == message


@given(st.text(alphabet="{}[]()?@$.*'\":,= ab01\\-<"))
def test_any_text_is_a_template_or_an_error(text: str) -> None:
    with contextlib.suppress(InvalidTemplate):
        Template(text).render(PEERS)


def test_a_command_prints_by_a_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"apiVersion": "cli.waggle/v1", "generatedAt": "2026-01-01T00:00:00Z", "errors": []}
    items = [{"instance": "main", "address": "192.0.2.1", **PEERS["items"][0], "name": "a\x1b[0m"}]
    with answering(tmp_path / "api", http({**answer, "kind": "PeerList", "items": items})):
        words = ["peers", "--socket", str(tmp_path / "api"), "-o"]
        assert main([*words, "jsonpath={.items[*].name}"]) == 0
    assert capsys.readouterr().out == "a\\x1b[0m"


def test_a_wrong_template_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["peers", "-o", "jsonpath={.items"])
    assert ended.value.code == 2
    text = "waggle peers: -o/--output: jsonpath: a { is not closed; see waggle peers --help\n"
    assert capsys.readouterr().err == text


@pytest.mark.parametrize("form", ["table", "json", "yaml", "jsonpath={.items[*].kind}"])
@pytest.mark.parametrize("words", [["decode", f"{'ff' * 16}001304"], ["docs"], ["crds", "BGPPeer"]])
def test_commands_without_an_agent_have_the_formats_too(
    words: list[str], form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-o", form]) == 0
    printed = capsys.readouterr().out
    if form == "json":
        assert json.loads(printed)["items"]
    else:
        assert printed or words == ["docs"]


@pytest.mark.parametrize("command", ["peers", "routes", "watch services", "bfd", "doctor"])
def test_a_template_without_the_errors_hides_no_outage(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    socket = str(tmp_path / "none")
    assert main([*command.split(), "--socket", socket, "-o", "jsonpath={.items[*].name}"]) > 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no agent runs here" in printed.err


@pytest.mark.parametrize("command", ["schema", "docs", "errors"])
def test_an_unknown_name_is_an_answer_with_an_error(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "nothing", "-o", "json"]) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["errors"][0]["code"] == "NotFound"
    assert printed.err == ""


def test_a_schema_is_one_line_of_jsonl(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "PeerList", "-o", "jsonl"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["title"] == "PeerList"


def test_text_that_the_locale_does_not_have_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "ascii"))
    assert main(["errors", "Advertised", "-o", "jsonpath={.items[0].reason}é"]) == 0
    assert written.getvalue() == b"Advertised\\xe9"
