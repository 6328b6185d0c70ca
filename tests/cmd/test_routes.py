"""``waggle routes`` against an agent with made-up routes."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cells.api.model import FamilyCount, OriginItem, RouteItem
from tests.support.api import MadeUp, serving, session_item
from waggle import output
from waggle.__main__ import main
from waggle.ask_agent import AgentError
from waggle.route_list import _read_ahead

PEER = session_item(node="a", instance="default", name="tor-1", state="Established", families=[])
ROUTES = [
    RouteItem(
        node="a",
        instance="default",
        peer="tor-1",
        family="ipv4-unicast",
        prefix="203.0.113.7/32",
        next_hop="192.0.2.10",
        as_path="65000",
        communities=["65000:99"],
        local_preference=150,
        origins=[
            OriginItem(kind="Service", namespace="shop", name="web"),
            OriginItem(kind="Service", namespace="shop", name="api"),
        ],
        since_time=datetime.now(UTC) - timedelta(days=20, hours=1),
    ),
    RouteItem(
        node="a",
        instance="default",
        peer="tor-1",
        family="ipv6-unicast",
        prefix="fd00:1::/64",
        origins=[OriginItem(kind="Node", name="a")],
        status="used",
        best=True,
    ),
]


@pytest.fixture(name="path")
def agent(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp([PEER], ROUTES)):
        yield path


def table(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["routes", *arguments, "--socket", str(path)]) == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_advertised_names_the_object_behind_each_route(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table(path, capsys) == [
        "NODE PEER PREFIX NEXT-HOP ORIGIN-OBJECT COMMUNITIES LP/MED AGE",
        "a tor-1 203.0.113.7/32 192.0.2.10 Service/shop/web +1 65000:99 150/- 20d",
        "a tor-1 fd00:1::/64 self Node/a - - -",
    ]


def test_routes_of_each_peer_are_in_address_order(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefixes = ["fd00:1::/64", "10.0.0.0/24", "9.9.9.9/32", "2001:db8::7/128", "10.0.0.0/8"]
    routes = [
        RouteItem(
            node="a", instance="default", peer=peer, family="ipv4-unicast", prefix=prefix, status=why
        )
        for why in ("best", "MultiExitDisc")
        for peer in ("tor-2", "tor-1")
        for prefix in prefixes
    ]  # fmt: skip
    ordered = ["9.9.9.9/32", "10.0.0.0/8", "10.0.0.0/24", "2001:db8::7/128", "fd00:1::/64"]
    with serving(tmp_path / "other.sock", MadeUp([PEER], routes)):
        rows = [line.split() for line in table(tmp_path / "other.sock", capsys, "received")[1:]]
        assert [(row[1], row[2]) for row in rows[::2]] == [
            (peer, prefix) for peer in ("tor-2", "tor-1") for prefix in ordered
        ]
        rows = [line.split() for line in table(tmp_path / "other.sock", capsys, "available")[1:]]
        assert [row[1] for row in rows[::4]] == ordered
        # The paths of a prefix stay as they are: the best ones first.
        assert [row[-1] for row in rows[:4]] == ["best", "best", "MultiExitDisc", "MultiExitDisc"]


def test_a_long_answer_stays_in_the_order_of_the_agent(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waggle.route_list.SORTED_ROUTES", 2)
    prefixes = ["10.3.0.0/24", "10.2.0.0/24", "10.1.0.0/24"]
    routes = [
        RouteItem(node="a", instance="i", peer="p", family="ipv4-unicast", prefix=prefix)
        for prefix in prefixes
    ]
    for number, expected in ((2, prefixes[1::-1]), (3, prefixes)):
        socket = tmp_path / f"{number}.sock"
        with serving(socket, MadeUp([PEER], routes[:number])):
            rows = [line.split() for line in table(socket, capsys)[1:]]
        assert [row[2] for row in rows] == expected


def test_a_family_may_stand_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row.split()[2] for row in table(path, capsys, "ipv6")[1:]] == ["fd00:1::/64"]
    assert [row.split()[2] for row in table(path, capsys, "advertised", "ipv4")[1:]] == [
        "203.0.113.7/32"
    ]


@pytest.mark.parametrize(
    ("words", "prefix"),
    [
        (("ipv4", "ipv4-unicast"), "203.0.113.7/32"),
        (("ipv6", "ipv6-unicast"), "fd00:1::/64"),
    ],
)
def test_a_family_has_a_short_name_and_that_of_its_configuration(
    words: tuple[str, str], prefix: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, full = (table(path, capsys, "advertised", word) for word in words)
    assert short == full
    assert [row.split()[2] for row in full[1:]] == [prefix]


def test_available_and_received_have_their_own_columns(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert table(path, capsys, "available", "ipv6") == [
        "NODE PREFIX NEXT-HOP FROM BEST AS-PATH STATUS",
        "a fd00:1::/64 self tor-1 yes - used",
    ]
    assert table(path, capsys, "received", "ipv6", "-o", "wide")[0] == (
        "NODE PEER PREFIX NEXT-HOP AS-PATH STATUS FILTER OBJECT INSTANCE COMMUNITIES LARGE LP/MED"
    )


@pytest.mark.parametrize("instances", [("blue", "red"), ("blue", "blue")])
def test_available_routes_of_several_instances_name_them(
    instances: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    routes = [
        RouteItem(node="a", instance=one, family="ipv4-unicast", prefix="10.0.0.0/24")
        for one in instances
    ]
    with serving(tmp_path / "other.sock", MadeUp([PEER], routes)):
        head, *rows = table(tmp_path / "other.sock", capsys, "available")
        assert not head.endswith("INSTANCE") or [row.split()[-1] for row in rows] == [*instances]
        assert head.endswith("INSTANCE") is (len(set(instances)) > 1)
        chosen = table(tmp_path / "other.sock", capsys, "available", "--instance", "blue")
        assert not chosen[0].endswith("INSTANCE")


def test_a_received_route_has_the_selector_that_accepts_it_or_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    selector = OriginItem(kind="FRRConfiguration", namespace="ns", name="a")

    def route(prefix: str, **fields: Any) -> RouteItem:  # noqa: ANN401
        return RouteItem(
            node="a", instance="i", peer="tor-1", family="ipv4-unicast", prefix=prefix, **fields
        )

    routes = [
        route("10.1.0.0/16", status="accepted", accepted=True,
                  filter="10.0.0.0/8 le 24", object=selector),
        route("10.96.1.0/24", status="AlwaysBlock 10.96.0.0/12",
                  accepted=False, filter="AlwaysBlock 10.96.0.0/12"),
        route("192.0.2.0/24", status="NotAllowed", accepted=False,
                  filter="NotAllowed"),
    ]  # fmt: skip
    path = tmp_path / "received.sock"
    with serving(path, MadeUp([PEER], routes)):
        assert table(path, capsys, "received") == [
            "NODE PEER PREFIX NEXT-HOP AS-PATH STATUS FILTER OBJECT",
            "a tor-1 10.1.0.0/16 - - accepted 10.0.0.0/8 le 24 FRRConfiguration/ns/a",
            "a tor-1 10.96.1.0/24 - - AlwaysBlock 10.96.0.0/12 - -",
            "a tor-1 192.0.2.0/24 - - NotAllowed - -",
        ]
        assert main(["routes", "received", "-o", "json", "--socket", str(path)]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert items[0]["object"] == {"kind": "FRRConfiguration", "namespace": "ns", "name": "a"}
    assert [item["filter"] for item in items] == [route.filter for route in routes]


def test_json_keeps_all_origins(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "-o", "json", "--socket", str(path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "RouteList"
    assert [origin["name"] for origin in answer["items"][0]["origins"]] == ["web", "api"]
    assert "nextHop" not in answer["items"][1]


@pytest.mark.parametrize("form", ["table", "wide"])
def test_a_wide_table_has_the_same_notes(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path / "agent.sock", MadeUp([PEER])):
        socket = str(tmp_path / "agent.sock")
        assert main(["routes", "192.0.2.0/24", "-o", form, "--socket", socket]) == 4
    assert capsys.readouterr().err == "waggle routes: no advertised route for 192.0.2.0/24\n"


def test_an_unknown_prefix_has_the_longest_match_of_its_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The made-up agent finds prefixes as text: this one stands for the longest match."""
    route = RouteItem(
        node="n", instance="main", peer="tor-1", family="ipv4-unicast", prefix="192.0.2.0"
    )
    with serving(tmp_path / "agent.sock", MadeUp([PEER], [route])):
        socket = str(tmp_path / "agent.sock")
        assert main(["routes", "192.0.2.0/25", "--socket", socket]) == 4
    text = "no advertised route for 192.0.2.0/25; the longest match of 192.0.2.0: 192.0.2.0"
    assert capsys.readouterr().err == f"waggle routes: {text}\n"


@pytest.mark.parametrize("asked", ["198.51.100.64/26", "198.51.100.64"])
def test_an_unknown_prefix_has_the_nearest_ones(
    asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefixes = ("198.51.99.0/24", "198.51.100.7/32", "203.0.113.0/24", "198.51.101.0/24")
    routes = [
        RouteItem(node="n", instance="main", peer="tor-1", family="ipv4-unicast", prefix=prefix)
        for prefix in prefixes
    ]
    with serving(tmp_path / "agent.sock", MadeUp([PEER], routes)):
        assert main(["routes", asked, "--socket", str(tmp_path / "agent.sock")]) == 4
    nearest = "; the nearest: 198.51.100.7/32, 198.51.101.0/24, 198.51.99.0/24\n"
    assert capsys.readouterr().err.endswith(nearest)


def test_an_unknown_peer_is_exit_4(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "--peer", "tor-9", "--socket", str(path)]) == 4
    assert capsys.readouterr().err == (
        "waggle routes: no peer is called tor-9 (did you mean tor-1?)\n"
    )


def test_a_prefix_selects_its_routes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["fd00:1::/64"], ["advertised", "ipv6", "fd00:1::/64"], ["fd00:1::/64", "ipv6"]):
        assert [row.split()[2] for row in table(path, capsys, *words)[1:]] == ["fd00:1::/64"]


def test_flags_are_accepted_between_the_arguments(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("advertised", "--peer", "tor-1", "ipv6", "-o", "wide", "fd00:1::/64")
    assert [row.split()[2] for row in table(path, capsys, *words)[1:]] == ["fd00:1::/64"]


def test_a_prefix_or_address_without_a_route_is_exit_4(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["routes", "received", "192.0.2.0/24", "--socket", str(path)]) == 4
    assert capsys.readouterr().err == "waggle routes: no received route for 192.0.2.0/24\n"
    assert main(["routes", "ipv4", "192.0.2.1", "--peer", "tor-1", "--socket", str(path)]) == 4
    assert capsys.readouterr().err == (
        "waggle routes: no advertised ipv4 route of peer tor-1 that contains 192.0.2.1\n"
    )
    assert main(["routes", "192.0.2.1", "-o", "json", "--socket", str(path)]) == 4
    answer = json.loads(capsys.readouterr().out)
    text = "no advertised route that contains 192.0.2.1"
    assert (answer["items"], answer["errors"]) == ([], [{"code": "NotFound", "message": text}])
    assert main(["routes", "192.0.2.1", "-o", "jsonl", "--socket", str(path)]) == 4
    assert text in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["recieved"], "did you mean received?"),
        (
            ["all"],
            "all is neither a table (available, advertised, received, kernel), a family (ipv4, ",
        ),
        (["10.0.0.0/33"], "10.0.0.0/33 is neither a table"),
        (["ipv4", "ipv6"], "more than one family"),
        (["received", "advertised"], "more than one table"),
        (["10.0.0.1", "10.0.0.2"], "more than one prefix"),
        (["ipv6", "10.0.0.1"], "10.0.0.1 is not of the family ipv6-unicast"),
    ],
)
def test_arguments_that_select_nothing_are_a_usage_error(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["routes", *words]) == 2
    message = capsys.readouterr().err
    assert error in message
    assert message.count("\n") == 1


def test_no_routes_are_one_sentence_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp([PEER])):
        assert main(["routes", "received", "ipv4", "--peer", "tor-1", "--socket", str(path)]) == 0
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("waggle routes: no received ipv4 routes of peer tor-1: ")
        assert main(["routes", "-o", "json", "--socket", str(path)]) == 0
        assert json.loads(capsys.readouterr().out)["items"] == []
        assert main(["routes", "-o", "jsonl", "--socket", str(path)]) == 0
        assert capsys.readouterr().out == ""


def test_a_route_that_is_counted_only_is_not_reported_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    counts = [
        FamilyCount(family="ipv4-unicast", routes=5000, not_kept=4000),
        FamilyCount(family="ipv6-unicast", routes=7, not_kept=7),
    ]
    counted = "routes are kept, the others are only counted (--keep-received)"
    with serving(path, MadeUp([PEER | {"received": counts}])):

        def answered(*words: str) -> tuple[int, list[str]]:
            status = main(["routes", "received", *words, "--socket", str(path)])
            lines = capsys.readouterr().err.splitlines()
            return status, [line.removeprefix("waggle routes: ") for line in lines]

        assert answered("192.0.2.1") == (
            4,
            [
                "no received route that contains 192.0.2.1 is kept",
                f"tor-1: 1000 of 5000 received ipv4 {counted}",
            ],
        )
        assert answered("ipv6") == (
            0,
            ["no received ipv6 route is kept", f"tor-1: 0 of 7 received ipv6 {counted}"],
        )
        assert answered() == (
            0,
            ["no received route is kept", f"tor-1: 1000 of 5007 received {counted}"],
        )


def test_a_word_that_is_no_table_family_or_prefix_is_one_sentence_and_exit_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["routes", "all"]) == 2
    error = capsys.readouterr().err
    assert "all is neither a table (available, advertised, received, kernel)" in error
    assert error.count("\n") == 1


MOST_ROUTES = 60 * output.GROUP_ROWS


class Printed(io.StringIO):
    """Standard output that notes what a program has printed first."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    def write(self, text: str) -> int:
        if "10.0.0.0/24" in text:
            self.begun.set()
        return super().write(text)


class Endless(MadeUp):
    """An agent that sends routes until some are printed, or until there are far too many."""

    def __init__(self, printed: Printed, end: Exception | None = None) -> None:
        super().__init__([PEER])
        self._printed = printed
        self._end = end
        self.sent = 0

    def routes(self, *_: object, **__: object) -> Iterator[list[RouteItem]]:
        while not self._printed.begun.is_set() and self.sent < MOST_ROUTES:
            self.sent += output.GROUP_ROWS
            yield [replace(ROUTES[0], prefix=f"10.0.{n}.0/24") for n in range(output.GROUP_ROWS)]
        if self._end is not None:
            raise self._end


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_routes_are_printed_while_the_agent_still_sends_others(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, printed = tmp_path / "agent.sock", Printed()
    agent = Endless(printed)
    with serving(path, agent):
        monkeypatch.setattr("sys.stdout", printed)
        assert main(["routes", "-o", form, "--socket", str(path)]) == 0
    # No more than fits into the buffers between the two.
    assert agent.sent < MOST_ROUTES
    assert printed.getvalue().count("/24") == agent.sent


@pytest.mark.parametrize("form", ["table", "json"])
def test_an_answer_that_breaks_off_is_an_error_behind_what_was_printed(
    tmp_path: Path,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, printed = tmp_path / "agent.sock", Printed()
    with serving(path, Endless(printed, ArithmeticError("of the agent"))):
        monkeypatch.setattr("sys.stdout", printed)
        assert main(["routes", "-o", form, "--socket", str(path)]) == 1
    assert printed.begun.is_set()
    (error,) = [
        line for line in capsys.readouterr().err.splitlines() if line.startswith("waggle routes: ")
    ]
    assert f"the agent at {path} has ended within its answer" in error


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_limit_is_a_positive_number(
    path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["routes", f"--limit={value}", "--socket", str(path)])
    assert raised.value.code == output.EXIT_USAGE
    assert "--limit" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--approve"]])
def test_an_agent_without_kernel_routes_is_reported(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        assert main(["routes", "kernel", *flags, "--socket", str(path)]) == 1
    assert "the agent installs no routes in the kernel" in capsys.readouterr().err


def test_the_routes_before_an_answer_breaks_off_are_in_order() -> None:
    routes = [{"instance": "main", "peer": "tor", "prefix": f"10.0.{n}.0/24"} for n in (2, 0, 1)]

    def items() -> Iterator[dict[str, Any]]:
        yield from routes
        raise AgentError("TimedOut", "no complete answer")

    ahead = _read_ahead(items())
    found = ahead.in_order(of_peers=True)
    assert [next(found)["prefix"] for _ in routes] == ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]
    with pytest.raises(AgentError, match="no complete answer"):
        next(found)
    assert not ahead.may_be_of_several_instances
