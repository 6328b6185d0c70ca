"""``waggle routes kernel``: the table, a prefix, an agent without such routes, the approval."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cells.api.model import KernelHopItem, KernelRouteItem, OriginItem
from cells.api.resource import ApiResource
from tests.support.api import MadeUp, serving
from waggle.__main__ import main

INSTALLED = KernelRouteItem(
    node="node-a",
    instance="main",
    table=254,
    metric=20,
    family="ipv4-unicast",
    prefix="10.1.0.0/16",
    type="unicast",
    next_hops=[KernelHopItem(via="192.0.2.1"), KernelHopItem(via="fe80::1", interface="eth0")],
    peers=["tor-1", "tor-2"],
    origins=[
        OriginItem(kind="FRRConfiguration", namespace="frr-k8s-system", name=name)
        for name in ("spine", "leaf")
    ],
    state="Installed",
)
BLACKHOLE = KernelRouteItem(
    node="node-a",
    table=7,
    metric=20,
    family="ipv4-unicast",
    prefix="10.2.0.0/16",
    type="blackhole",
    state="NotInstalled",
    reason="Refused",
    message="no such table",
)
Run = Callable[..., tuple[int, list[list[str]], str]]


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("agent") / "s"
    resource = ApiResource(
        path="/v1/kernel-routes",
        kind="KernelRouteList",
        parameters=("family", "prefix"),
        limited=True,
        read=lambda query: iter(
            [[row for row in (INSTALLED, BLACKHOLE) if query.get("prefix") in (None, row.prefix)]]
        ),
    )
    with serving(path, MadeUp(), resource):
        yield path


@pytest.fixture(name="run")
def _run(path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, list[list[str]], str]:
        done = main(["routes", "kernel", *arguments, "--socket", str(path)])
        captured = capsys.readouterr()
        return done, [line.split() for line in captured.out.splitlines()], captured.err

    return run


def test_a_route_has_its_next_hops_peers_and_state(run: Run) -> None:
    done, table, _ = run("-o", "wide")
    assert done == 0
    assert table == [
        [
            *("NODE", "TABLE", "PREFIX", "NEXT-HOPS", "PEERS", "ORIGIN-OBJECT"),
            *("STATE", "INSTANCE", "METRIC", "MESSAGE"),
        ],
        [
            *("node-a", "254", "10.1.0.0/16", "192.0.2.1", "fe80::1%eth0", "tor-1", "tor-2"),
            *("FRRConfiguration/frr-k8s-system/spine", "+1", "Installed", "main", "20", "-"),
        ],
        [
            *("node-a", "7", "10.2.0.0/16", "blackhole", "-", "-", "Refused", "-", "20"),
            *("no", "such", "table"),
        ],
    ]
    assert [line[-1] for line in run()[1]] == ["STATE", "Installed", "Refused"]


def test_one_route_is_selected_by_its_prefix(run: Run) -> None:
    assert [line[2] for line in run("ipv4", "10.2.0.0/16")[1]] == ["PREFIX", "10.2.0.0/16"]


@pytest.mark.parametrize(
    ("prefix", "near"),
    [
        ("10.3.0.0/16", "; the nearest: 10.2.0.0/16, 10.1.0.0/16"),
        ("10.3.0.9", "; the nearest: 10.2.0.0/16, 10.1.0.0/16"),
        ("192.0.2.0/24", ""),
        ("2001:db8::/32", ""),
    ],
)
def test_a_prefix_that_the_kernel_does_not_have_is_named_with_the_nearest_ones(
    prefix: str, near: str, run: Run, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"no route of the kernel for {prefix}{near}"
    assert run(prefix) == (4, [], f"waggle routes: {text}\n")
    assert main(["routes", "kernel", prefix, "--socket", str(path), "-o", "json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["items"], answer["errors"]) == ([], [{"code": "NotFound", "message": text}])


def test_at_most_as_many_as_wanted(run: Run) -> None:
    assert len(run("--limit", "1")[1]) == 2


def test_json_output_has_the_routes_of_the_api(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["routes", "kernel", "--socket", str(path), "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "KernelRouteList"
    assert [item["prefix"] for item in answer["items"]] == ["10.1.0.0/16", "10.2.0.0/16"]


@pytest.mark.parametrize("flag", ["--peer", "--instance"])
def test_sessions_do_not_select_routes_of_the_kernel(run: Run, flag: str) -> None:
    text = f"waggle routes: {flag} does not select routes of the kernel\n"
    assert run(flag, "x") == (2, [], text)


def test_conditions_of_bgp_do_not_either(run: Run) -> None:
    done, table, text = run("--count")
    assert (done, table) == (2, [])
    assert "are for routes of BGP" in text


def test_an_agent_that_installs_no_routes_states_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp()):
        for arguments in ([], ["--approve"]):
            assert main(["routes", "kernel", *arguments, "--socket", str(path)]) == 1
            assert "the agent installs no routes in the kernel" in capsys.readouterr().err


def test_an_approval_is_given_once_and_by_no_screen_that_goes_on(run: Run) -> None:
    done, table, text = run("--approve", "--watch")
    assert (done, table) == (2, [])
    assert text == "waggle routes: --approve installs routes once: not with --watch\n"


def test_a_list_that_the_limit_cuts_is_named(run: Run) -> None:
    done, table, note = run("--limit", "1")
    assert (done, len(table)) == (0, 2)
    assert note == "waggle routes: this is the first route; there are more\n"
    assert run("--limit", "2")[2] == ""
