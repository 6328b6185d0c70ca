"""Routes of an answer by prefix, community, AS path and origin: ``waggle routes --within ...``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cells.api.model import OriginItem, RouteItem
from tests.support.api import MadeUp, serving, session_item
from waggle.__main__ import main

PEER = session_item(node="a", instance="i", name="tor-1", state="Established", families=[])


def route(
    prefix: str, as_path: str, communities: list[str], origin: str, *origins: OriginItem
) -> RouteItem:
    return RouteItem(
        node="a",
        instance="i",
        peer="tor-1",
        family="ipv6-unicast" if ":" in prefix else "ipv4-unicast",
        prefix=prefix,
        as_path=as_path,
        communities=communities[:1],
        large_communities=communities[1:],
        origin=origin,
        origins=list(origins),
    )


WEB = OriginItem(kind="Service", namespace="shop", name="web")
ROUTES = [
    route("10.0.0.0/8", "64512", [], "igp"),
    route("10.1.0.0/16", "64513 64512 65001", ["65000:1"], "incomplete"),
    route("10.2.0.0/16", "164512", ["65000:1", "65000:1:2"], "igp", WEB),
    route("2001:db8::/32", "64512 {65001,65002}", [], "igp", OriginItem(kind="Node", name="web")),
    route("2001:db8:9::/48", "64999", ["65535:0"], "incomplete"),
]


@pytest.fixture(name="path", scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("agent") / "agent.sock"
    with serving(path, MadeUp([PEER], ROUTES)):
        yield path


@pytest.mark.parametrize(
    ("flags", "selected"),
    [
        (["--within", "10.0.0.1/8"], [0, 1, 2]),
        (["--within", "10.0.0.0/8"], [0, 1, 2]),
        (["--within", "10.0.0.0/12"], [1, 2]),
        (["--within", "::/0"], [3, 4]),
        (["--community", "65000:1"], [1, 2]),
        (["--community", "65000:1", "--community", "65000:1:2"], [2]),
        (["--community", "graceful-shutdown"], [4]),
        (["--as-path", "_64512_"], [0, 1, 3]),
        (["--as-path", "^64512_"], [0, 3]),
        (["--as-path", "_64512$"], [0]),
        (["--as-path", "_65002_"], [3]),
        (["--origin", "incomplete"], [1, 4]),
        (["--origin", "web"], [2, 3]),
        (["--origin", "shop/web"], [2]),
        (["--origin", "Node/web"], [3]),
        (["--within", "10.0.0.0/8", "--as-path", "_64512_"], [0, 1]),
    ],
)
def test_routes_are_selected(
    path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], selected: list[int]
) -> None:
    assert main(["routes", "-o", "json", "--socket", str(path), *flags]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [item["prefix"] for item in items] == [ROUTES[number].prefix for number in selected]
    assert main(["routes", "--count", "--socket", str(path), *flags]) == 0
    assert capsys.readouterr().out == f"{len(selected)}\n"


def test_the_limit_is_one_of_selected_routes(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--socket", str(path), "--community", "65000:1", "--limit"]
    assert main(["routes", *flags, "1"]) == 0
    out, err = capsys.readouterr()
    assert "10.1.0.0/16" in out
    assert "10.2.0.0/16" not in out
    assert "this is the first route; there are more" in err
    assert main(["routes", *flags, "2"]) == 0
    assert "there are more" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (
            ["--community", "65000:9"],
            0,
            "no advertised route is selected by --community (5 without it)",
        ),
        (
            ["--origin", "egp", "--within", "10.0.0.0/8"],
            0,
            "no advertised route is selected by --within and --origin (5 without them)",
        ),
        (
            ["10.1.0.0/16", "--origin", "igp"],
            4,
            "no advertised route is selected by --origin (1 without it)",
        ),
    ],
)
def test_flags_that_select_no_route_are_the_reason(
    path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], status: int, message: str
) -> None:
    assert main(["routes", "--socket", str(path), *flags]) == status
    assert capsys.readouterr() == ("", f"waggle routes: {message}\n")


@pytest.mark.parametrize(
    "flags",
    [
        ["--within", "10.0.0.1/33"],
        ["--as-path", "("],
        ["--community", "no-exports"],
        ["--community", "65536:1"],
        ["--community", "1:1:4294967296"],
        ["--community", "65000"],
    ],
)
def test_what_cannot_be_read_is_wrong_usage(flags: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["routes", *flags])
    assert ended.value.code == 2


def test_routes_of_the_kernel_have_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routes", "kernel", "--count"]) == 2
    assert "are for routes of BGP" in capsys.readouterr().err


def test_the_number_of_an_unknown_peer_is_an_error(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["routes", "--count", "--peer", "none", "--socket", str(path)]) == 4
    assert capsys.readouterr().out == ""
    assert main(["routes", "--count", "-o", "json", "--socket", str(path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["count"], answer["items"]) == (5, [])
