"""``waggle plan``: two directories of manifests, and what the nodes do when one replaces the other."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.cmd.lab import configuration, service
from waggle import ask_agent
from waggle.__main__ import main
from waggle.commands.plan import program
from waggle.commands.plan.markdown import text
from waggle.commands.plan.text import field_text

Objects = list[dict[str, Any]]
PORTS = (1179, 1180)


def objects() -> Objects:
    return [*deepcopy(configuration(PORTS)), service("web", "198.51.100.10")]


def of_kind(kind: str, listed: Objects) -> dict[str, Any]:
    return next(item for item in listed if item["kind"] == kind)


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., int]:
    """Return a function that plans from one list of objects to another."""

    def run(before: Objects, after: Objects, *arguments: str) -> int:
        for name, content in (("before", before), ("after", after)):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "all.yaml").write_text(yaml.safe_dump_all(content))
        paths = ("-f", str(tmp_path / "after"), "--from", str(tmp_path / "before"))
        return main(["plan", *paths, *arguments])

    return run


def test_no_change_is_a_sentence_and_exit_status_0(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(objects(), objects()) == 0
    assert capsys.readouterr().out == "Plan: no changes (1 node).\n"


def test_a_reset_names_the_changed_field_and_routes_their_object_and_peers(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    after = objects()
    of_kind("CiliumBGPPeerConfig", after)["spec"]["timers"]["holdTimeSeconds"] = 30
    after[-1] = service("web", "198.51.100.12")
    assert plan(objects(), after) == 1
    assert capsys.readouterr().out.splitlines() == [
        "on node node-1:",
        "  ! session main/tor-1 (127.0.0.2) resets: holdTime 90 -> 30",
        "  - route 198.51.100.10/32 (Service/shop/web) from main/tor-1, main/tor-2",
        "  + route 198.51.100.12/32 (Service/shop/web) to main/tor-1, main/tor-2",
        "Plan: 1 session to reset; 2 routes to advertise, 2 to withdraw, on 1 of 1 node.",
    ]


def test_another_as_number_of_an_instance_resets_each_of_its_sessions(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    after = objects()
    of_kind("CiliumBGPClusterConfig", after)["spec"]["bgpInstances"][0]["localASN"] = 65002
    assert plan(objects(), after, "-o", "json") == 1
    (item,) = json.loads(capsys.readouterr().out)["items"]
    change = {"before": 65001, "after": 65002}
    assert item["instances"] == [
        {"name": "main", "change": "recreate", "fields": [{"name": "localASN", **change}]}
    ]
    assert [(s["peer"], s["change"]) for s in item["sessions"]] == [
        ("tor-1", "reset"),
        ("tor-2", "reset"),
    ]
    assert item["sessions"][0]["fields"] == [{"name": "instance.localASN", **change}]
    assert item["sessions"][0]["object"] == "CiliumBGPClusterConfig/rack"


def test_nodes_with_the_same_plan_are_one(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    before = objects()
    for number in (2, 3, 4, 5):
        node = deepcopy(of_kind("Node", before))
        node["metadata"]["name"] = f"node-{number}"
        if number == 5:
            node["metadata"]["labels"] = {}
        node["status"]["addresses"][0]["address"] = f"192.0.2.{10 + number}"
        before.append(node)
    after = deepcopy(before)
    of_kind("Service", after)["metadata"]["labels"] = {}
    assert plan(before, after) == 1
    out = capsys.readouterr().out
    assert out.startswith("on nodes node-1, node-2, node-3 and 1 more:\n  - route ")
    assert out.endswith("Plan: 8 routes to withdraw, on 4 of 5 nodes.\n")
    assert plan(before, after, "--node", "node-5") == 0
    assert plan(before, after, "--node", "node-9") == 4
    assert "there is no Node node-9; the Nodes: node-1, node-2" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["render", "explain"])
def test_of_many_nodes_the_nearest_names_come_first(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = []
    for number in range(30):
        nodes.append(deepcopy(of_kind("Node", objects())))
        nodes[-1]["metadata"]["name"] = f"worker-{number}"
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([*objects()[1:], *nodes]))
    assert main([command, "-f", str(path), "--node", "wroker-27"]) == 4
    assert "there is no Node wroker-27; the Nodes: worker-27, " in capsys.readouterr().err
    if command == "explain":
        chosen = ("--node", "worker-27", "--peer", "tor1")
        assert main([command, "-f", str(path), *chosen]) == 4
        text = "waggle explain: no such peer: --peer tor1 (did you mean tor-1?)\n"
        assert capsys.readouterr().err == text


def test_an_object_that_is_refused_is_a_problem_and_its_last_valid_version_stays(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    after = objects()
    of_kind("CiliumBGPPeerConfig", after)["spec"]["timers"]["holdTimeSeconds"] = 1
    assert plan(objects(), after, "-o", "json") == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["items"] == []
    (problem,) = answer["problems"]
    assert problem["objects"] == ["CiliumBGPPeerConfig/tor-1"]
    assert problem["field"] == "spec.timers.holdTimeSeconds"
    assert (problem["change"], problem["nodes"]) == ("new", ["node-1"])
    # It is there already: no reason to fail.
    assert plan(after, after) == 0
    assert plan(after, objects(), "--node", "node-1") == 1
    assert "+ solved: CiliumBGPPeerConfig/tor-1: spec.timers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limit", "status", "message"),
    [
        ("2", 1, ""),
        ("1", 2, "2 of 4 routes would be withdrawn, --max-withdraw is 1"),
        ("50%", 1, ""),
        ("49%", 2, "2 of 4 routes would be withdrawn, --max-withdraw is 49%"),
    ],
)
def test_a_pipeline_fails_for_too_many_withdrawals(
    plan: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    limit: str,
    status: int,
    message: str,
) -> None:
    before = [*objects(), service("shop", "198.51.100.11")]
    assert plan(before, objects(), "--max-withdraw", limit) == status
    assert message in capsys.readouterr().err


def test_a_limit_is_a_number_or_a_percentage(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        plan(objects(), objects(), "--max-withdraw", "many")
    assert "--max-withdraw: not a number, nor a percentage: 'many'" in capsys.readouterr().err


def test_an_error_names_the_flag_that_causes_it(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(objects(), objects(), "--node", "node-1", "--received", "none") == 2
    assert capsys.readouterr().err == "waggle plan: none: No such file or directory\n"
    assert plan(objects(), objects(), "--fib-table", "255") == 2
    assert capsys.readouterr().err.startswith("waggle plan: --fib-table: 255 is ")


def test_the_former_manifests_may_be_read_from_standard_input(
    plan: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``kubectl get ... -o yaml | waggle plan --from - --add -f change.yaml``."""
    change = tmp_path / "change.yaml"
    change.write_text(yaml.safe_dump(service("new", "198.51.100.11")))
    listed = {"apiVersion": "v1", "kind": "List", "items": objects()}
    stream = io.TextIOWrapper(io.BytesIO(yaml.safe_dump(listed).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["plan", "--from", "-", "--add", "-f", str(change)]) == 1
    assert "Plan: 2 routes to advertise, on 1 of 1 node.\n" in capsys.readouterr().out
    assert main(["plan", "--from", "-", "-f", "-"]) == 2
    assert "standard input is one of --from and -f" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "json"])
def test_without_an_agent_the_way_without_one_is_named(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "-f", str(tmp_path), "--socket", str(tmp_path / "none"), "-o", form]
    assert main(words) == 2
    out, err = capsys.readouterr()
    text = err if form == "table" else json.loads(out)["errors"][0]["message"]
    assert text.rstrip().endswith(
        "; --from PATH compares with manifests, --from-cluster with a cluster"
    )


@pytest.mark.parametrize(
    ("words", "status", "code", "text"),
    [
        (("--node", "other"), 4, "NotFound", "there is no Node other"),
        (("--received", "none"), 2, "BadRequest", "--received: the routes of one node"),
        (("--node", "node-1", "--received", "none"), 2, "BadRequest", "none: No such file"),
        (("--prune",), 2, "BadRequest", "--prune: only with --from-cluster"),
    ],
)
def test_what_no_plan_can_be_made_of_is_an_error_in_the_form_of_the_answer(
    words: tuple[str, ...],
    status: int,
    code: str,
    text: str,
    plan: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan(objects(), objects(), *words) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"waggle plan: {text}")
    assert plan(objects(), objects(), *words, "-o", "json") == status
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["items"]) == ("PlanList", [])
    assert [error["code"] for error in answer["errors"]] == [code]
    assert answer["errors"][0]["message"].startswith(text)


def test_a_pipeline_fails_for_a_session_that_would_end(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    after = objects()
    of_kind("CiliumBGPClusterConfig", after)["spec"]["bgpInstances"][0]["peers"].pop()
    assert plan(objects(), after) == 1
    assert "- session main/tor-2 (127.0.0.3), 1 route\n" in capsys.readouterr().out
    assert plan(objects(), after, "--no-reset") == 2
    assert capsys.readouterr().err == (
        "waggle plan: 1 session would end (node node-1): --no-reset\n"
    )
    # A peer that comes ends none.
    assert plan(after, objects(), "--no-reset") == 1


def test_with_add_the_other_objects_stay(plan: Callable[..., int]) -> None:
    change = [service("web", "198.51.100.10"), service("new", "198.51.100.11")]
    assert plan(objects(), change, "--add", "--no-reset", "--max-withdraw", "0") == 1
    assert plan(objects(), change, "--no-reset") == 2


def test_a_file_that_cannot_be_parsed_is_no_deletion(
    plan: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan(objects(), objects())
    (tmp_path / "after" / "all.yaml").write_text("kind: [")
    capsys.readouterr()
    paths = ("-f", str(tmp_path / "after"), "--from", str(tmp_path / "before"))
    assert main(["plan", *paths]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("waggle plan: ")
    assert "all.yaml" in err


def test_markdown_shows_texts_of_objects_as_they_are(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    after = objects()
    of_kind("CiliumBGPPeerConfig", after)["spec"]["timers"]["holdTimeSeconds"] = 1
    plan(objects(), [*after, service("new", "198.51.100.11")], "-o", "markdown", "--no-reset")
    out = capsys.readouterr().out
    assert out.startswith("### Plan: 2 routes to advertise; 1 new problem, on 1 of 1 node\n")
    assert "> [!WARNING]\n> - problem: CiliumBGPPeerConfig/tor-1: " in out
    row = "route 198.51.100.11/32 (Service/shop/new) to main/tor-1, main/tor-2"
    assert f"| `+` | {row} |\n" in out
    assert text("<b>|`@all` #1 https://x [y](z) *a*\n&") == (
        "\\<b\\>\\|\\`&#64;all\\` &#35;1 https:&#47;/x \\[y\\](z) \\*a\\*\\\\x0a&amp;"
    )


def test_the_kernel_routes_of_one_node_are_planned(
    plan: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    received = tmp_path / "received.json"
    received.write_text(json.dumps({"127.0.0.2": [{"prefix": "203.0.113.0/24"}]}))
    assert plan(objects(), objects(), "--received", str(received)) == 2
    assert "which --node names" in capsys.readouterr().err
    arguments = ("--received", str(received), "--node", "node-1")
    assert plan(objects(), objects(), *arguments) == 0


def frr_configuration(*prefixes: str, **profile: int) -> dict[str, Any]:
    """Return an FRRConfiguration with a peer that accepts these prefixes, and has BFD."""
    neighbor = {
        "address": "192.0.2.1",
        "asn": 65000,
        "bfdProfile": "quick",
        "toReceive": {"allowed": {"prefixes": [{"prefix": prefix} for prefix in prefixes]}},
    }
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "tor", "namespace": "frr-k8s-system"},
        "spec": {
            "bgp": {
                "routers": [{"asn": 65001, "id": "192.0.2.11", "neighbors": [neighbor]}],
                "bfdProfiles": [{"name": "quick", **profile}],
            }
        },
    }


def test_a_changed_profile_of_bfd_is_its_changed_fields(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    before = [frr_configuration(detectMultiplier=3)]
    after = [frr_configuration(detectMultiplier=7, receiveInterval=90)]
    fields = ("bfd.receiveInterval 300 -> 90", "bfd.detectMultiplier 3 -> 7")
    assert plan(before, after, "--node", "n1", "--bfd") == 1
    assert capsys.readouterr().out.splitlines() == [
        "on node n1:",
        f"  ~ session default/192.0.2.1 (192.0.2.1) stays up: {', '.join(fields)}",
        "Plan: 1 session to update, on 1 of 1 node.",
    ]


def test_without_bfd_a_profile_changes_no_session_and_is_a_problem(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with_profile = [frr_configuration(detectMultiplier=3)]
    assert plan(with_profile, [frr_configuration(detectMultiplier=7)]) == 0
    without = deepcopy(with_profile)
    del without[0]["spec"]["bgp"]["routers"][0]["neighbors"][0]["bfdProfile"]
    capsys.readouterr()
    assert plan(without, with_profile, "--node", "n1") == 2
    assert "this agent runs without BFD (--bfd)" in capsys.readouterr().out
    assert plan(without, with_profile, "--node", "n1", "--bfd", "-o", "json") == 1
    (item,) = json.loads(capsys.readouterr().out)["items"]
    (field,) = item["sessions"][0]["fields"]
    assert (field["name"], field["before"]) == ("bfd", None)
    assert field["after"]["detectMultiplier"] == 3
    assert "detect_multiplier" not in field["after"]


def test_of_long_values_the_text_shows_where_they_differ() -> None:
    prefixes = [f"10.{number}.0.0/16" for number in range(20)]
    field = {"name": "import", "before": prefixes, "after": [*prefixes[:-1], "10.99.0.0/16"]}
    assert field_text(field) == "import …8.0.0/16,10.19.0.0/16 -> …8.0.0/16,10.99.0.0/16"


def test_routes_in_the_kernel_come_change_and_go(
    plan: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two peers announce 10.2.0.0/16: the route of the second one is accepted after the change."""

    def objects_accepting(first: list[str], second: list[str]) -> Objects:
        network = {
            "apiVersion": "waggle.dev/v1alpha1",
            "kind": "NodeNetwork",
            "metadata": {"name": "n1"},
            "spec": {"devices": [{"name": "eth0", "addresses": ["192.0.2.11/24"]}]},
        }
        item = frr_configuration(*first)
        (router,) = item["spec"]["bgp"]["routers"]
        accepting = {"allowed": {"prefixes": [{"prefix": prefix} for prefix in second]}}
        router["neighbors"] += [{"address": "192.0.2.2", "asn": 65000, "toReceive": accepting}]
        return [network, item]

    routes = [{"prefix": prefix} for prefix in ("10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16")]
    received = tmp_path / "received.json"
    received.write_text(json.dumps({"192.0.2.1": routes, "192.0.2.2": routes[1:2]}))
    before = objects_accepting(["10.1.0.0/16", "10.2.0.0/16"], [])
    after = objects_accepting(["10.2.0.0/16", "10.3.0.0/16"], ["10.2.0.0/16"])
    arguments = ("--node", "n1", "--received", str(received))
    assert plan(before, after, *arguments) == 1
    out = capsys.readouterr().out.splitlines()
    kernel = [line for line in out if line[4:].startswith("kernel route ")]
    hops = "via 192.0.2.1 dev eth0 -> via 192.0.2.1 dev eth0,via 192.0.2.2 dev eth0"
    assert kernel == [
        "  - kernel route 10.1.0.0/16 in table 254",
        f"  ~ kernel route 10.2.0.0/16 in table 254: nexthops {hops}",
        "  + kernel route 10.3.0.0/16 in table 254",
    ]
    assert out[-1] == (
        "Plan: 2 sessions to update; 1 kernel route to install, 1 to update, 1 to remove, "
        "on 1 of 1 node."
    )
    plan(before, after, *arguments, "-o", "markdown")
    markdown = capsys.readouterr().out.splitlines()
    assert [row for row in markdown if "kernel route 10" in row] == [
        f"| `{line[2]}` | {text(line[4:])} |" for line in kernel
    ]
    assert "1 kernel route to install, 1 to update, 1 to remove" in markdown[0]
    plan(before, after, *arguments, "-o", "json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["summary"]["kernel"] == {"install": 1, "remove": 1, "update": 1}
    assert answer["items"][0]["kernel"][0] == {
        "table": 254,
        "prefix": "10.1.0.0/16",
        "metric": 20,
        "change": "remove",
    }
    # The routes of a peer that comes with the change are announced after it.
    added = deepcopy(before)
    del added[1]["spec"]["bgp"]["routers"][0]["neighbors"][1]
    plan(added, after, *arguments, "-o", "json")
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert [route["change"] for route in item["kernel"]] == ["remove", "update", "install"]
    # Without --received nothing is known of the kernel.
    plan(before, after, "--node", "n1", "-o", "json")
    assert json.loads(capsys.readouterr().out)["summary"]["kernel"] == {}


def test_the_error_of_an_agent_is_the_error_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects()))
    error = {"code": "NotReady", "message": "nothing has been read yet"}
    answer = {"items": [], "errors": [error]}
    agent = SimpleNamespace(get=lambda path, _: answer if path == "/v1/intent" else None)
    monkeypatch.setattr(ask_agent, "client", lambda _: agent)
    assert main(["plan", "-f", str(tmp_path), "-o", "json"]) == 2
    (found,) = json.loads(capsys.readouterr().out)["errors"]
    assert found["code"] == "NotReady"
    assert found["message"].startswith("nothing has been read yet; --from PATH compares")


def test_passwords_that_cannot_be_compared_are_a_note() -> None:
    posted: list[object] = []

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        posted.append((path, body))
        if len(posted) > 1:
            raise ask_agent.AgentError("Forbidden", "no")
        return {"items": [{"instance": "main", "peer": "tor", "equal": False}]}

    agent: Any = SimpleNamespace(post=post)
    notes: list[str] = []
    passwords = {("main", "tor"): b"new"}
    assert program.changed_passwords(agent, notes, passwords) == {("main", "tor")}
    assert notes == []
    assert program.changed_passwords(agent, notes, passwords) == set()
    assert notes == ["whether passwords change is not known: no"]
    candidate = {"instance": "main", "peer": "tor", "password": "bmV3"}
    assert posted == [("/v1/passwords", {"candidates": [candidate]})] * 2
