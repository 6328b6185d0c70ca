"""The output of the demo: changes as lines or as items, and one answer of ``--once``, a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import json_schema, plain_yaml
from waggle import __main__ as front_end
from waggle.commands.demo import program
from waggle.commands.demo.background import Ready, detach
from waggle.commands.demo.lock import DemoLock, RunsAlreadyError
from waggle.commands.demo.report import Report
from waggle.commands.schema.schemas import schema
from waggle.demo_changes import ReceivedRoute, Session, Snapshot

UP = Session(address="127.0.0.1", peer_asn=65000, state="Established")
DOWN = Session(address="127.0.0.1", state="Idle", reason="connection lost")
WEB = ReceivedRoute(
    prefix="198.51.100.10/32",
    next_hop="127.0.0.1",
    as_path="65000",
    communities=("65000:80",),
    origin_objects=("Service/shop/web",),
)
TAGGED = ReceivedRoute(
    prefix="198.51.100.10/32", next_hop="127.0.0.1", large_communities=("65000:1:2",)
)
STEPS = (
    (Snapshot(), Snapshot((UP,), (WEB,))),
    (Snapshot((UP,), (WEB,)), Snapshot((DOWN,), (TAGGED,), ("all is lost",))),
    (Snapshot((DOWN,), (TAGGED,), ("all is lost",)), Snapshot((DOWN,), (), ("all is lost",))),
)
LINES = [
    "session 127.0.0.1: Established",
    "+ 198.51.100.10/32 via 127.0.0.1 as-path 65000 communities 65000:80 origin Service/shop/web",
    "session 127.0.0.1: Idle (connection lost)",
    "~ 198.51.100.10/32 via 127.0.0.1 as-path - communities 65000:1:2",
    "! all is lost",
    "- 198.51.100.10/32",
]
ROUTE = {
    "prefix": "198.51.100.10/32",
    "nextHop": "127.0.0.1",
    "asPath": "65000",
    "communities": ["65000:80"],
    "originObjects": ["Service/shop/web"],
}


def report(form: str, *, is_endless: bool = True) -> Report:
    return Report(form, is_endless=is_endless)


def checked(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document that is one of its kind."""
    assert document["kind"] == "DemoList"
    json_schema.validate(document, schema("DemoList"))
    return document


def test_each_change_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = report("table")
    lines.remark("Edit it.")
    for before, after in STEPS:
        lines.changed(before, after)
    assert capsys.readouterr().out.splitlines() == ["Edit it.", *LINES]


@pytest.mark.parametrize("form", ["json", "jsonl", "yaml"])
def test_each_change_is_an_item_on_its_own_and_nothing_else_is_printed(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    items = report(form)
    items.remark("Edit it.")
    for before, after in STEPS:
        items.changed(before, after)
    items.failed("DemoFailed", "the router has ended with status 1")
    printed = capsys.readouterr().out
    decoded = (
        list(plain_yaml.load_all(printed))
        if form == "yaml"
        else [json.loads(line) for line in printed.splitlines()]
    )
    *changes, end = decoded
    kinds = [(item["type"], *(item.keys() - {"type", "eventTime"})) for item in changes]
    assert kinds == [
        ("ADDED", "session"),
        ("ADDED", "route"),
        ("MODIFIED", "session"),
        ("MODIFIED", "route"),
        ("OCCURRED", "message"),
        ("DELETED", "route"),
    ]
    assert changes[0]["session"] == {
        "address": "127.0.0.1", "peerASN": 65000, "state": "Established",
    }  # fmt: skip
    assert changes[1]["route"] == ROUTE
    assert end == {
        "errors": [{"code": "DemoFailed", "message": "the router has ended with status 1"}]
    }
    envelope = {"apiVersion": "cli.waggle/v1", "generatedAt": "2026-01-01T12:00:00Z"}
    checked({**envelope, "kind": "DemoList", "items": changes, "errors": []})


def test_a_template_has_the_text_of_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    report('jsonpath={.type} {.route.prefix}{"\\n"}').changed(*STEPS[0])
    assert capsys.readouterr().out == "ADDED \nADDED 198.51.100.10/32\n"


def test_the_answer_is_the_router_at_its_end() -> None:
    snapshot = Snapshot((UP,), (WEB,))
    assert report("table", is_endless=False).answer(snapshot) == f"{LINES[1][2:]}\n"
    document = checked(json.loads(report("json", is_endless=False).answer(snapshot)))
    assert [item["type"] for item in document["items"]] == ["ADDED", "ADDED"]
    assert document["items"][1]["route"] == ROUTE
    text = report("jsonpath={.items[*].route.prefix}", is_endless=False).answer(snapshot)
    assert text == "198.51.100.10/32"


def test_an_answer_that_is_an_error_has_it_in_its_envelope(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report("yaml", is_endless=False).failed("DemoFailed", "no port\n  session a: Idle")
    printed = capsys.readouterr()
    assert printed.err == ""
    (error,) = plain_yaml.load(printed.out)["errors"]
    assert error == {"code": "DemoFailed", "message": "no port\n  session a: Idle"}
    report("table", is_endless=False).failed("DemoFailed", "no port\n  session a: Idle")
    text = "waggle demo: no port\nwaggle demo:   session a: Idle\n"
    assert capsys.readouterr() == ("", text)


def test_the_end_of_a_demo_is_an_answer_of_one_item(capsys: pytest.CaptureFixture[str]) -> None:
    class Stopping:
        def stop_holder(self) -> bool:
            return True

    stopping: Any = Stopping()
    assert program._stop(stopping, report("json", is_endless=False)) == 0
    (item,) = checked(json.loads(capsys.readouterr().out))["items"]
    assert item["message"] == "The demo is ended: the agent and the router."


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--stop"], 1, "NoDemo"),
        (["--once", "--manifests", "nowhere"], 2, "BadRequest"),
    ],
)
def test_a_demo_that_does_not_begin_is_an_error_in_an_envelope(
    words: list[str],
    status: int,
    code: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["demo", *words, "-o", "json", "--socket", str(tmp_path / "agent.sock")]
    assert front_end.main(words) == status
    printed = capsys.readouterr()
    assert [error["code"] for error in checked(json.loads(printed.out))["errors"]] == [code]
    assert printed.err == ""


@pytest.mark.parametrize(
    ("words", "status", "codes"), [(["--once"], 1, ["DemoRuns"]), (["--detach"], 0, [])]
)
def test_a_demo_that_runs_is_an_error_of_another_and_the_answer_of_detach(
    words: list[str],
    status: int,
    codes: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "agent.sock"
    lock = DemoLock(path)
    lock.take()
    try:
        assert front_end.main(["demo", *words, "-o", "json", "--socket", str(path)]) == status
    finally:
        lock.release()
    document = checked(json.loads(capsys.readouterr().out))
    assert [error["code"] for error in document["errors"]] == codes
    messages = [item["message"] for item in (*document["errors"], *document["items"])]
    with pytest.raises(RunsAlreadyError) as raised:
        raise RunsAlreadyError(int(messages[0].split("process ")[1].split(")")[0]))
    assert messages == [str(raised.value)]


@pytest.mark.parametrize("answer", ["198.51.100.10/32 via 127.0.0.1\n", ""])
def test_the_demo_in_the_background_answers_also_without_a_text(
    answer: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lock = DemoLock(tmp_path / "agent.sock")
    lock.take()

    def run(ready: Ready) -> int:
        ready(answer)
        return 0

    assert detach(lock, report("jsonpath={.a}", is_endless=False), run) == 0
    assert capfd.readouterr().out == answer
