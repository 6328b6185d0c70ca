"""``waggle-agent``: settings in, exit status out; wrong settings are one sentence."""

from __future__ import annotations

import importlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from cells.api.model import ReconcilerItem
from cells.apply.show import lines
from cells.hive import describe
from tests.support import plain_yaml
from waggle_agent.__main__ import CELLS, main


def failing(
    capsys: pytest.CaptureFixture[str], *arguments: str, env: dict[str, str] | None = None
) -> str:
    """Run the program, which has to end with 2 and one line; return the line."""
    try:
        status: object = main(arguments, env or {})
    except SystemExit as left:
        status = left.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.removesuffix("\n")


def test_an_unknown_flag_is_named_with_the_closest_known_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert failing(capsys, "--http-adress", "9100") == (
        "waggle-agent: unknown flag --http-adress (did you mean --http-address?); "
        "see waggle-agent --help"
    )


def test_a_flag_of_the_wrong_type_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(capsys, "--otlp-interval-seconds", "soon") == (
        "waggle-agent: --otlp-interval-seconds: expected a number, not a text: 'soon'"
    )
    assert failing(capsys, "--http-address", "nonsense") == (
        "waggle-agent: --http-address: is not [HOST:]PORT: 'nonsense'"
    )


@pytest.mark.parametrize(
    ("flag", "key", "reason"),
    [
        (
            "--router-id-allocation-ip-pool",
            "cells.cilium.routerIdAllocationIpPool",
            "'nonsense' is not an IPv4 prefix such as 10.0.0.0/24",
        ),
        (
            "--advertise-allow",
            "cells.intent.advertiseAllow",
            "'nonsense' is not a prefix such as 10.0.0.0/24",
        ),
        ("--http-address", "cells.http.address", "is not [HOST:]PORT: 'nonsense'"),
        ("--keep-received", "cells.apply.keepReceived", "is neither a number nor all: 'nonsense'"),
    ],
)
def test_an_option_that_breaks_a_rule_is_named_with_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, key: str, reason: str
) -> None:
    assert failing(capsys, flag, "nonsense") == f"waggle-agent: {flag}: {reason}"
    variable = "WAGGLE" + flag.removeprefix("-").upper().replace("-", "_")
    expected = f"waggle-agent: {variable}: {reason}"
    assert failing(capsys, env={variable: "nonsense"}) == expected
    path = tmp_path / "waggle.yaml"
    _, cell, name = key.split(".")
    value = "[nonsense]" if cell == "intent" else "nonsense"
    path.write_text(f"cells: {{{cell}: {{{name}: {value}}}}}\n")
    assert failing(capsys, "--config", str(path)) == f"waggle-agent: {path}: {key}: {reason}"


def test_an_unknown_key_and_its_file_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "waggle.yaml"
    path.write_text("cells:\n  http:\n    adress: 127.0.0.1:9100\n")
    expected = f"waggle-agent: {path}: cells.http.adress: unknown key (did you mean address?)"
    assert failing(capsys, "--config", str(path)) == expected
    assert failing(capsys, env={"WAGGLE_CONFIG": str(path)}) == expected


def test_an_unknown_variable_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(capsys, env={"WAGGLE_LOGLEVEL": "debug"}) == (
        "waggle-agent: WAGGLE_LOGLEVEL: unknown variable (did you mean WAGGLE_LOG_LEVEL?)"
    )


def test_a_cell_that_needs_a_disabled_one_names_both(capsys: pytest.CaptureFixture[str]) -> None:
    message = failing(capsys, "--http-address", "0", "--disable-cell", "metrics")
    assert "needs Metrics of cell metrics, which is disabled" in message


@pytest.mark.parametrize(
    ("program", "flags"),
    [("waggle_agent", ["--node-name", "n"]), ("waggle_operator", ["--kubeconfig", "in-cluster"])],
)
def test_exit_status_is_0_after_an_orderly_end_and_1_after_a_failure(
    program: str,
    flags: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = importlib.import_module(f"{program}.__main__").main
    monkeypatch.setattr(f"{program}.program.run", lambda *_: None)
    assert run(flags, {}) == 0

    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(f"{program}.program.run", fail)
    assert run(flags, {}) == 1
    assert capsys.readouterr().err == f"{program.replace('_', '-')}: no room\n"


def test_help_lists_every_option_by_cell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"], {})
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for cell in CELLS:
        found = list(describe(cell.name, cell.options))
        assert (f"cell {cell.name}:" in shown) == bool(found)
        for setting in found:
            assert f"{setting.flag} " in shown
            assert setting.env in "".join(shown.split())


def test_every_option_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for cell in CELLS:
        for setting in describe(cell.name, cell.options):
            assert f"| {cell.name} | `{setting.key}` | `{setting.flag}`, `{setting.env}` |" in page


def test_cells_prints_the_tree_and_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cells"], {}) == 0
    shown = capsys.readouterr().out
    for cell in CELLS:
        assert f"{cell.name}: " in shown
    assert "http: disabled (--http-address is not set)" in shown
    assert main(["cells", "--dot"], {}) == 0
    graph = capsys.readouterr().out
    assert graph.startswith("digraph cells {")
    assert '"http" -> "metrics" [label="Metrics"];' in graph


def test_a_reconciler_is_printed_with_what_it_does_and_needs() -> None:
    item = ReconcilerItem(
        order=20,
        name="route-set",
        target="speaker",
        tables=["route sets", "routes"],
        summary="the routes of each set",
        objects=7,
        errors=1,
        waiting=2,
        drifted=3,
        last_run_time=datetime(2026, 1, 1, 12, tzinfo=UTC),
        duration_seconds=0.00123,
    )
    needs = "    needs route sets, routes (tables), speaker (target)"
    assert lines([item]).splitlines() == [
        (
            "20 route-set: 7 objects, 1 error, 2 waiting, 3 drifted "
            "(last run 2026-01-01T12:00:00Z, 1.2 ms)"
        ),
        "    the routes of each set",
        needs,
    ]
    well = replace(item, errors=0, waiting=0, drifted=0, duration_seconds=None)
    assert lines([well]).splitlines()[0] == (
        "20 route-set: 7 objects, 0 errors (last run 2026-01-01T12:00:00Z, 0.0 ms)"
    )
    assert lines([replace(item, last_run_time=None)]).startswith("20 route-set: has not run\n")


def test_reconcilers_are_printed_in_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reconcilers", "--api-socket", str(tmp_path / "none")], {}) == 0
    shown = capsys.readouterr().out
    heads = [line for line in shown.splitlines() if not line.startswith(" ")]
    assert heads == [
        "10 instance: has not run",
        "20 route-set: has not run",
        "30 import-policy: has not run",
        "40 peer: has not run",
    ]
    assert "needs instances, peers, secrets, bfd-sessions (tables), speaker (target)" in shown


@pytest.mark.parametrize(
    ("command", "kind", "first"),
    [("cells", "CellList", "logging"), ("reconcilers", "ReconcilerList", "instance")],
)
def test_cells_and_reconcilers_are_printed_as_documents(
    command: str, kind: str, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, "--api-socket", str(tmp_path / "none"), "-o"]
    assert main([*words, "json"], {}) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["items"][0]["name"]) == (kind, first)
    assert main([*words, "yaml"], {}) == 0
    assert plain_yaml.load(capsys.readouterr().out)["items"] == document["items"]
    assert main([*words, "jsonl"], {}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == document["items"]
    assert main([*words, "jsonpath={.items[0].name}"], {}) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "text"], "-o: only with cells or reconcilers"),
        (["run", "-o", "json"], "-o: only with cells or reconcilers"),
        (["--dot"], "--dot: only with cells"),
        (["reconcilers", "--dot"], "--dot: only with cells"),
        (["cells", "--dot", "-o", "json"], "--dot excludes -o"),
    ],
)
def test_a_flag_of_another_command_is_refused(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("waggle_agent.program.run", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        main(words, {})
    assert ended.value.code == 2
    assert f"waggle-agent: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("program", ["waggle_agent", "waggle_operator"])
def test_help_has_80_columns_and_the_dialects_last(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        importlib.import_module(f"{program}.__main__").main(["help"])
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    cells = re.findall(r"^cell ([\w-]+):$", text, re.MULTILINE)
    dialects = ["antrea", "cilium", "frrk8s", "metallb", "ovnk"]
    assert [name for name in cells if name in dialects] == cells[-len(set(cells) & set(dialects)) :]
