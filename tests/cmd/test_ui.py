"""``waggle ui``: the page of a source on loopback, its token, and several nodes as one list."""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import at_socket
from cells.api.resource import ApiStream
from cells.api.transport import AgentError
from tests.support import json_schema, looptime, plain_yaml
from tests.support.api import serving
from tests.support.page import made_up
from waggle import output
from waggle.__main__ import main
from waggle.commands.schema.schemas import schema
from waggle.commands.ui import _port
from waggle.commands.ui.program import NO_REVISIONS, UiServer, print_link, print_next_link
from waggle.commands.ui.sources import OneAgent, Query, Revisions, merged

Job = Callable[[UiServer, int], None]


class Made:
    """A source whose answers a test has chosen."""

    def __init__(self, *errors: AgentError) -> None:
        self.asked: list[tuple[str, Query]] = []
        self._errors = list(errors)
        self.changed = threading.Event()

    def read(self, path: str, query: Query) -> dict[str, Any]:
        self.asked.append((path, query))
        if self._errors:
            raise self._errors[0]
        return output.document("List", [{"node": "a"}])

    def follow(self, changed: Callable[[], None]) -> None:
        self.changed.wait(60)
        changed()


def served(source: Any, job: Job) -> None:  # noqa: ANN401
    """Run a job in a thread while a source is served."""

    async def run() -> None:
        server = UiServer(source, "token")
        port = await server.start(0)
        try:
            await asyncio.to_thread(job, server, port)
        finally:
            await server.stop()

    main_: Coroutine[Any, Any, None] = run()
    asyncio.run(main_)


TOKEN = "token"


def get(port: int, path: str, *, token: str = TOKEN) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    status, text = answer.status, answer.read().decode()
    connection.close()
    return status, text


def test_views_are_passed_on_with_their_parameters_and_nothing_else_is() -> None:
    source = Made()

    def job(_: UiServer, port: int) -> None:
        assert json.loads(get(port, "/v1/routes?table=received&limit=5")[1])["items"] == [
            {"node": "a"}
        ]
        assert get(port, "/v1/intent")[0] == 404
        assert get(port, "/")[0] == 200

    served(source, job)
    assert source.asked == [("/v1/routes", {"table": "received", "limit": "5"})]


def test_without_the_token_of_the_run_nothing_is_asked() -> None:
    source = Made()

    def job(server: UiServer, port: int) -> None:
        assert get(port, "/v1/peers", token="other")[0] == 401
        assert 'type="password"' in get(port, "/", token="other")[1]
        assert get(port, "/sign-in?token=token", token="")[0] == 401
        link = server.link(port).removeprefix(f"http://127.0.0.1:{port}")
        assert get(port, link, token="")[0] == 303
        assert get(port, link, token="")[0] == 401, "it is in the history of the browser"
        assert server.link(port).removeprefix(f"http://127.0.0.1:{port}") != link

    served(source, job)
    assert source.asked == []


def test_an_agent_that_does_not_answer_is_an_error_on_the_page() -> None:
    def job(_: UiServer, port: int) -> None:
        answer = json.loads(get(port, "/v1/peers")[1])
        assert answer["errors"] == [{"code": "AgentNotRunning", "message": "no agent runs here"}]

    served(Made(AgentError("AgentNotRunning", "no agent runs here")), job)


def test_a_change_of_the_source_reaches_the_pages() -> None:
    source = Made()

    def job(_: UiServer, port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": "Bearer token", "Accept": "text/event-stream"}
        connection.request("GET", "/v1/live", headers=headers)
        answer = connection.getresponse()
        assert answer.readline() == b'data: {"changes":1}\n'
        answer.readline()
        source.changed.set()
        assert answer.readline() == b'data: {"changes":2}\n'
        connection.close()

    served(source, job)


def test_changes_are_counted_once_a_second_and_silence_is_an_empty_piece_every_ten() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = UiServer(Made(), TOKEN)
        live = server._live()
        pieces: list[tuple[float, object]] = []

        async def next_piece() -> None:
            piece = await anext(live)
            pieces.append((loop.time(), piece))

        await next_piece()
        # Many changes within the second are one.
        loop.call_later(0.2, server._changed)
        loop.call_later(0.9, server._changed)
        for _ in range(3):
            await next_piece()
        loop.call_later(5, server._changed)
        await next_piece()
        await live.aclose()
        assert not server._waiting
        began = pieces[0][0]
        assert [(round(at - began, 3), piece) for at, piece in pieces] == [
            (0, [{"changes": 1}]),
            (1, [{"changes": 2}]),
            (12, []),
            (22, []),
            (27, [{"changes": 3}]),
        ]

    looptime.run(scenario())


def test_pages_get_the_revisions_of_the_source_or_none() -> None:
    async def scenario() -> None:
        server = UiServer(Made(), TOKEN)
        live = server._live()
        pieces = [await anext(live)]
        for given in ({"state": 3, "routes": 7}, {}):
            server._changed(given)
            pieces.append(await anext(live))
        await live.aclose()
        (first,), (with_revisions,), (without,) = pieces
        assert (first, without) == ({"changes": 1}, {"changes": 3})
        assert with_revisions == {"changes": 2, "state": 3, "routes": 7}

    looptime.run(scenario())


def test_an_agent_has_its_revisions_read_and_none_once_it_ends(tmp_path: Path) -> None:
    class EnoughError(Exception):
        """Ends the following, which goes on for good."""

    async def revisions() -> AsyncGenerator[Sequence[dict[str, int]]]:
        for number in (1, 2):
            yield [{"state": number}]

    def changed(revisions: Revisions = NO_REVISIONS) -> None:
        heard.append(revisions)
        if not revisions:
            raise EnoughError

    heard: list[Revisions] = []
    path = tmp_path / "agent.sock"
    stream = ApiStream(path="/v1/live", read=lambda _: revisions())
    with serving(path, made_up(), stream), pytest.raises(EnoughError):
        OneAgent(at_socket(path)).follow(changed)
    assert heard == [{"state": 1}, {"state": 2}, {}]


def test_the_page_of_an_agent_reads_its_socket(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, made_up()):
        source = OneAgent(at_socket(path))
        names = [item["name"] for item in source.read("/v1/peers", {})["items"]]
    assert names == ["tor-1", "tor-2", "tor-3"]


def test_without_an_agent_no_page_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", "--socket", str(tmp_path / "none")]) == output.EXIT_ERROR
    assert "no agent runs here" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--all-nodes", "--socket", "/x"], ["--from-statuses"]], ids=" ".join
)
def test_flags_that_contradict_each_other_are_wrong_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", *words]) == output.EXIT_USAGE
    assert capsys.readouterr().err.startswith("waggle ui: --")


def answer(*items: dict[str, Any], code: str = "", **members: object) -> dict[str, Any]:
    errors = [{"code": code, "message": "m"}] if code else []
    return {**output.document("List", list(items), errors), **members}


def test_the_items_of_all_nodes_are_one_list_with_their_nodes() -> None:
    failure = {"code": "AgentUnreachable", "message": "silent", "node": "c"}
    one = merged(
        {"a": answer({"name": "x"}, truncated=True), "b": answer({"name": "y", "node": "b"})},
        [failure],
    )
    assert one["items"] == [{"name": "x", "node": "a"}, {"name": "y", "node": "b"}]
    assert one["errors"] == [failure]
    assert one["truncated"] is True


def test_a_name_that_one_node_has_is_no_error_of_the_others() -> None:
    absent = answer(code="NotFound")
    assert merged({"a": answer({"name": "x"}), "b": absent}, [])["errors"] == []
    assert [error["node"] for error in merged({"a": absent, "b": absent}, [])["errors"]] == [
        "a",
        "b",
    ]
    broken = merged({"a": answer({"name": "x"}), "b": answer(code="BadRequest")}, [])
    assert [error["node"] for error in broken["errors"]] == ["b"]


@pytest.mark.parametrize(
    ("text", "port"),
    [("0", 0), ("65535", 65535), ("65536", None), ("-1", None), ("80x", None), ("\u0663", None)],
)
def test_a_port_is_a_number_up_to_65535(text: str, port: int | None) -> None:
    if port is not None:
        assert _port(text) == port
        return
    with pytest.raises(argparse.ArgumentTypeError, match=f"not a port: '{text}'"):
        _port(text)


@pytest.mark.parametrize("form", ["json", "yaml", "jsonpath={.items[0].url}"])
def test_the_address_is_one_document_and_the_next_one_is_beside_it(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://127.0.0.1:8080/sign-in?code=first"
    print_link(url, 8080, form)
    print_next_link("http://127.0.0.1:8080/sign-in?code=second", form)
    printed = capsys.readouterr()
    assert printed.err == "another browser: http://127.0.0.1:8080/sign-in?code=second\n"
    if form.startswith("jsonpath"):
        assert printed.out == url
        return
    document = json.loads(printed.out) if form == "json" else plain_yaml.load(printed.out)
    json_schema.validate(document, schema(document["kind"]))
    assert document["kind"] == "PageAddressList"
    assert document["items"] == [{"url": url, "address": "127.0.0.1", "port": 8080}]


def test_for_people_the_addresses_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_link("http://a", 1, "table")
    print_next_link("http://b", "table")
    assert capsys.readouterr() == ("http://a\nanother browser: http://b\n", "")


def test_a_port_in_use_is_an_error_in_the_envelope(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, made_up()), socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["ui", "--socket", str(path), "--port", port]
        assert main([*words, "-o", "json"]) == output.EXIT_ERROR
        (error,) = json.loads(capsys.readouterr().out)["errors"]
        assert error["code"] == "ListenFailed"
        assert main(words) == output.EXIT_ERROR
    assert capsys.readouterr() == ("", f"waggle ui: {error['message']}\n")


@pytest.mark.program
def test_a_script_opens_the_page_by_the_address_in_the_document(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    words = [sys.executable, "-m", "waggle", "ui", "-o", "jsonl", "--socket", str(path)]
    with (
        serving(path, made_up()),
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as page,
    ):
        assert page.stdout is not None
        item = json.loads(page.stdout.readline())
        answer = get(item["port"], item["url"].partition(str(item["port"]))[2], token="")
        # Not SIGINT, which a program in the background of a shell ignores.
        page.terminate()
        assert page.stdout.read() == b""
    assert answer[0] == 303
    assert page.returncode == -signal.SIGTERM
