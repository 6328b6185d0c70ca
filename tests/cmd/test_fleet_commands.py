"""What commands print of all nodes: of agents in this process, and of an agent whose Pod does not run.

`test_fleet_apiserver` has the same by pods/exec of a real API server.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from cells.api.model import (
    ExplainItem,
    KernelRouteItem,
    PartItem,
    ProblemItem,
    ReceivedExplainItem,
    RouteItem,
    StatusItem,
)
from cells.api.pod_transport import ClusterLoop
from cells.api.resource import ApiResource
from cells.api.transport import AgentError, UnixTransport
from resources.kubernetes.exec import Container
from tests.cmd.test_peers import DOWN, UP
from tests.cmd.test_schema import check
from tests.support.api import MadeUp, serving
from waggle.__main__ import main
from waggle.fleet import ask, view
from waggle.fleet.agents import AgentPod
from waggle.fleet.ask import LIST_SECONDS, Fleet, in_cluster, unknown_node
from waggle.fleet.statuses import StatusSessions

IDLE = {**DOWN, "name": "tor-3", "address": "192.0.2.3", "state": "Idle"}
ROUTES = (
    ("198.51.100.10/32", "tor-1", True),
    ("198.51.100.9/32", "tor-1", True),
    ("198.51.100.10/32", "tor-2", False),
)


def route(prefix: str, peer: str, accepted: bool) -> RouteItem:
    return RouteItem(
        node="x",
        instance="default",
        peer=peer,
        family="ipv4-unicast",
        prefix=prefix,
        accepted=accepted,
        filter="all",
    )


def explained(prefix: str, reason: str) -> ExplainItem:
    return ExplainItem(
        node="x",
        instance="default",
        peer="tor-1",
        family="ipv4-unicast",
        prefix=prefix,
        advertised=reason == "Advertised",
        reason=reason,
    )


STATUS = StatusItem(node="x", ready=True, health="ok", reporting="yes")


RECEIVED = ReceivedExplainItem(
    node="x",
    instance="i",
    peer="tor-1",
    family="ipv4-unicast",
    prefix="198.51.100.9/32",
    received=True,
    accepted=True,
    filter="all",
    reason="Accepted",
    message="accepted",
)
KERNEL = KernelRouteItem(
    node="x",
    table=254,
    metric=20,
    family="ipv4-unicast",
    prefix=RECEIVED.prefix,
    type="unicast",
    state="Installed",
)
IN_KERNEL = ApiResource(
    path="/v1/kernel-routes",
    kind="KernelRouteList",
    parameters=("family", "prefix"),
    limited=True,
    read=lambda query: iter([[KERNEL] if query.get("prefix") == KERNEL.prefix else []]),
)
"""Of one agent: others leave the kernel alone."""
AGENTS = {
    "good": MadeUp(
        peers=[UP],
        routes=[route(*given) for given in ROUTES],
        explained=[explained("198.51.100.7/32", "Advertised")],
        explained_received=[RECEIVED],
        status=replace(STATUS, peers=[UP]),
    ),
    "down": MadeUp(
        peers=[DOWN, UP, IDLE],
        routes=[route("198.51.100.9/32", "tor-1", accepted=True)],
        explained=[explained("198.51.100.7/32", "SessionDown")],
        explained_received=[RECEIVED],
        status=replace(
            STATUS,
            health="degraded",
            degraded=[PartItem(path="kubernetes", message="away", since_time=UP["sinceTime"])],
            problems=[ProblemItem(objects=[], field="", message="two of a name")],
            peers=[DOWN, UP, IDLE],
        ),
    ),
    "starting": MadeUp(
        status=replace(STATUS, ready=False, waiting=["the first round"]), instances=["red"]
    ),
}


class Cluster:
    """The Pods of a cluster and its status objects."""

    def __init__(self) -> None:
        self.nodes = [*AGENTS]
        self.problems = {"pending": "its Pod is Pending"}
        self.namespaces: list[str] = []
        self.seconds: set[float] = set()
        self.statuses: StatusSessions | AgentError = StatusSessions({}, [])

    async def find(self, _: object, namespace: str) -> list[AgentPod]:
        """Return the Pods."""
        self.namespaces.append(namespace)
        pods = [*dict.fromkeys(self.nodes, "").items(), *self.problems.items()]
        return [AgentPod(node, Container("w", node, "agent"), why) for node, why in pods]

    async def read(self, *_: object, **__: object) -> StatusSessions:
        """Return the status objects."""
        if isinstance(self.statuses, AgentError):
            raise self.statuses
        return self.statuses


@pytest.fixture(name="sockets", scope="module")
def _sockets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        for name, made_up in AGENTS.items():
            parts = (IN_KERNEL,) if name == "good" else ()
            stack.enter_context(serving(directory / name, made_up, *parts))
        yield directory


@pytest.fixture(name="cluster")
def _cluster(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()

    def transport(_: object, container: Container, seconds: float) -> UnixTransport:
        cluster.seconds.add(seconds)
        return UnixTransport(sockets / container.pod)

    monkeypatch.setattr(ask, "find_agents", cluster.find)
    monkeypatch.setattr(ask, "PodTransport", transport)
    monkeypatch.setattr(view, "read_statuses", cluster.read)
    return cluster


Run = Callable[..., tuple[int, list[list[str]], list[str]]]


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, list[list[str]], list[str]]:
        """Return the exit status, the cells of the table, and what is written beside it."""
        done = main([*arguments])
        captured = capsys.readouterr()
        return done, [line.split() for line in captured.out.splitlines()], captured.err.splitlines()

    return run


Answer = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(name="answer")
def _answer(capsys: pytest.CaptureFixture[str]) -> Answer:
    def answer(*arguments: str) -> tuple[int, dict[str, Any]]:
        done = main([*arguments, "-o", "json"])
        return done, check(capsys.readouterr().out)

    return answer


def test_sessions_that_are_down_are_first_and_nodes_without_an_answer_are_errors(
    cluster: Cluster, answer: Answer
) -> None:
    done, given = answer("peers", "--all-nodes", "--timeout", "7")
    assert done == 3
    assert [(i["node"], i["name"], i["state"]) for i in given["items"]] == [
        ("down", "tor-2", "Active"),
        ("down", "tor-3", "Idle"),
        ("down", "tor-1", "Established"),
        ("good", "tor-1", "Established"),
    ]
    error = {"code": "AgentNotRunning", "message": "its Pod is Pending", "node": "pending"}
    assert given["errors"] == [error]
    summary = given["summary"]
    assert (summary["nodes"], summary["answered"]) == (4, 3)
    assert (summary["sessions"], summary["established"]) == (4, 2)
    assert (given["notes"], cluster.seconds) == ([], {7.0})
    assert cluster.namespaces == ["waggle-system"]


def test_the_table_is_followed_by_failures_and_the_summary(cluster: Cluster, run: Run) -> None:
    done, table, beside = run("peers", "--all-nodes", "-n", "elsewhere")
    assert done == 3
    assert [line[0] for line in table] == ["NODE", "down", "down", "down", "good"]
    assert beside[0] == "waggle peers: pending: its Pod is Pending"
    assert beside[1].startswith(
        "waggle peers: 2 of 4 sessions Established; 3 of 4 nodes answered; version "
    )
    assert len(beside) == 2
    assert cluster.namespaces == ["elsewhere"]


def test_a_peer_that_no_node_has_is_not_found_with_the_nearest_name_of_all_nodes(
    cluster: Cluster, run: Run, answer: Answer
) -> None:
    cluster.problems.clear()
    text = "no peer is called tor-33 (did you mean tor-3?)"
    done, table, beside = run("peers", "--all-nodes", "--peer", "tor-33")
    assert (done, table, beside[0]) == (4, [], f"waggle peers: {text}")
    done, given = answer("peers", "--all-nodes", "--peer", "tor-33")
    assert (done, given["items"]) == (4, [])
    assert given["errors"] == [{"code": "NotFound", "message": text}]
    # Of the routes of a peer the agents answer so; "starting" has no peer, and no near name.
    text = "no peer is called tor-33 (did you mean tor-3?)"
    done, given = answer("routes", "received", "--all-nodes", "--peer", "tor-33")
    assert (done, given["items"]) == (4, [])
    assert given["errors"] == [{"code": "NotFound", "message": text}]
    assert run("routes", "received", "--all-nodes", "--peer", "tor-33")[2][0] == (
        f"waggle routes: {text}"
    )


def test_an_instance_of_one_node_exists(cluster: Cluster, run: Run) -> None:
    """The agent of `starting` alone has it, without peers."""
    cluster.problems.clear()
    for words in (["peers"], ["routes", "advertised"]):
        prog = f"waggle {words[0]}"
        done, table, beside = run(*words, "--all-nodes", "--instance", "red")
        assert (done, table) == (0, [])
        assert not [line for line in beside if "no instance" in line]
        done, _, beside = run(*words, "--all-nodes", "--instance", "rde")
        assert (done, beside[0]) == (4, f"{prog}: no instance is called rde")
        # "starting" has no such peer, the others no such instance.
        done, _, beside = run(*words, "--all-nodes", "--instance", "red", "--peer", "tor-1")
        text = "no peer is called tor-1 in the instance red"
        assert (done, beside[0]) == (4, f"{prog}: {text}")


def test_a_prefix_that_no_node_has_is_not_found_with_the_nearest_ones_of_all_nodes(
    cluster: Cluster, run: Run, answer: Answer
) -> None:
    cluster.problems.clear()
    text = "no advertised route for 198.51.100.8/31; the nearest: 198.51.100.9/32, 198.51.100.10/32"
    done, table, beside = run("routes", "198.51.100.8/31", "--all-nodes")
    assert (done, table, beside[0]) == (4, [], f"waggle routes: {text}")
    done, given = answer("routes", "198.51.100.8/31", "--all-nodes")
    assert (done, given["items"]) == (4, [])
    assert given["errors"] == [{"code": "NotFound", "message": text}]
    # Of selected nodes: theirs alone.
    assert run("routes", "198.51.100.8/31", "--node", "down")[2][0].endswith(
        "; the nearest: 198.51.100.9/32"
    )
    assert run("routes", "received", "203.0.113.7", "--all-nodes")[::2] == (
        4,
        [
            "waggle routes: no received route that contains 203.0.113.7",
            *run("routes", "--all-nodes")[2],
        ],
    )


def test_a_target_that_no_node_could_advertise_has_one_sentence(
    cluster: Cluster, run: Run, answer: Answer
) -> None:
    cluster.problems.clear()
    words = ("explain", "192.0.2.0/24", "--all-nodes")
    text = "nothing that any node could advertise contains 192.0.2.0/24"
    assert run(*words)[2][0] == f"waggle explain: {text}"
    done, given = answer(*words)
    assert (done, given["items"]) == (4, [])
    assert given["errors"] == [{"code": "NotFound", "message": text}]
    # One node has its own sentence.
    cluster.nodes = ["good"]
    assert answer(*words)[1]["errors"][0]["message"] == (
        "nothing that node n could advertise contains 192.0.2.0/24"
    )


def test_routes_of_a_prefix_that_flags_reject_on_all_nodes_are_counted(
    cluster: Cluster, run: Run
) -> None:
    cluster.problems.clear()
    done, _, beside = run("routes", "198.51.100.9/32", "--community", "65000:1", "--all-nodes")
    assert (done, beside[0]) == (
        4,
        "waggle routes: no advertised route is selected by --community (2 without it)",
    )


def test_a_route_that_no_kernel_has_is_named(cluster: Cluster, run: Run) -> None:
    cluster.problems.clear()
    cluster.nodes = ["good"]
    done, _, beside = run("routes", "kernel", "192.0.2.0/24", "--all-nodes")
    assert (done, beside[0]) == (4, "waggle routes: no route of the kernel for 192.0.2.0/24")


def test_with_nodes_without_an_answer_the_others_are_what_has_no_such_name(
    cluster: Cluster, run: Run, answer: Answer
) -> None:
    words = ("peers", "--all-nodes", "--peer", "tor-33")
    done, given = answer(*words)
    text = "no peer is called tor-33 (did you mean tor-3?)"
    assert (done, [error["code"] for error in given["errors"]]) == (
        3,
        ["AgentNotRunning", "NotFound"],
    )
    assert given["errors"][1]["message"] == f"of the nodes that answered: {text}"
    # The status objects of such a node have near names as well.
    cluster.statuses = StatusSessions({"pending": [reported("pending", "tor-333", "Active")]}, [])
    assert "did you mean tor-333?" in answer(*words)[1]["errors"][1]["message"]
    # Where nothing has answered, nothing is claimed.
    cluster.nodes, cluster.statuses = [], StatusSessions({}, [])
    done, _, beside = run(*words)
    assert (done, [line for line in beside if "tor-33" in line]) == (3, [])


def test_a_peer_that_one_node_has_is_found(cluster: Cluster, answer: Answer) -> None:
    cluster.problems.clear()
    done, given = answer("routes", "received", "--all-nodes", "--peer", "tor-3")
    assert (done, given["errors"]) == (0, [])


def test_nodes_are_selected_by_name(cluster: Cluster, answer: Answer, run: Run) -> None:
    done, given = answer("peers", "--node", "good")
    assert (done, [item["node"] for item in given["items"]]) == (0, ["good"])
    done, given = answer("peers", "--node", "good", "--node", "down")
    assert {item["node"] for item in given["items"]} == {"good", "down"}
    done, table, beside = run("peers", "--node", "goood")
    assert (done, table) == (4, [])
    assert beside == ["waggle peers: no agent has a Pod on a node goood; the nearest: good"]
    assert answer("peers", "--node", "x")[1]["errors"] == [
        {"code": "NotFound", "message": "no agent has a Pod on a node x"}
    ]


def test_the_nearest_names_are_at_most_three() -> None:
    known = {f"worker-{n}" for n in range(9)}
    assert unknown_node("worker-1x", known).count("worker-") == 1 + 3


def test_the_status_of_each_node_is_a_line_the_worst_first(cluster: Cluster, run: Run) -> None:
    done, table, _ = run("status", "--all-nodes")
    assert done == 3
    assert table[0] == ["NODE", "READY", "HEALTH", "ESTABLISHED", "PROBLEMS", "MESSAGE"]
    assert [line[:5] for line in table[1:]] == [
        ["starting", "no", "ok", "0/0", "0"],
        ["down", "yes", "degraded", "1/3", "1"],
        ["good", "yes", "ok", "1/1", "0"],
    ]
    assert " ".join(table[1][5:]) == "waits for the first round"
    assert " ".join(table[2][5:]) == "kubernetes: away (and 3 more)"
    cluster.problems.clear()
    assert run("status", "--all-nodes")[0] == 1
    assert run("status", "--node", "starting")[0] == 1
    assert run("status", "--node", "good")[0] == 0
    wide = run("status", "--node", "good", "-o", "wide")[1]
    assert wide[0][5] == "STATUS"
    assert wide[1][5] == "yes"


def test_routes_that_are_not_accepted_are_first_then_by_prefix_and_node(
    cluster: Cluster, run: Run, answer: Answer
) -> None:
    cluster.problems.clear()
    done, given = answer("routes", "received", "--all-nodes")
    assert (done, given["errors"]) == (0, [])
    assert [(i["prefix"], i["node"], i["peer"]) for i in given["items"]] == [
        ("198.51.100.10/32", "good", "tor-2"),
        ("198.51.100.9/32", "down", "tor-1"),
        ("198.51.100.9/32", "good", "tor-1"),
        ("198.51.100.10/32", "good", "tor-1"),
    ]
    done, table, _ = run("routes", "received", "--all-nodes", "--count")
    assert table == [["NODE", "ROUTES"], ["down", "1"], ["good", "3"], ["starting", "0"]]
    within = answer("routes", "--all-nodes", "--within", "198.51.100.8/31")[1]["items"]
    assert [(item["prefix"], item["node"]) for item in within] == [
        ("198.51.100.9/32", "down"),
        ("198.51.100.9/32", "good"),
    ]


def test_a_table_without_routes_is_named(cluster: Cluster, run: Run) -> None:
    cluster.problems.clear()
    assert run("routes", "available", "--node", "starting")[2][0] == (
        "waggle routes: no available routes"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("kernel", "--approve"),
        ("--approve",),
        ("kernel", "--within", "192.0.2.0/24"),
        ("kernel", "--peer", "tor-1"),
    ],
)
def test_what_one_agent_alone_does_is_wrong_usage(
    cluster: Cluster, run: Run, arguments: tuple[str, ...]
) -> None:
    done, table, beside = run("routes", *arguments, "--all-nodes")
    assert (done, table, cluster.namespaces) == (2, [], [])
    assert "--approve is for one agent" in beside[0]


def test_each_node_has_an_explanation_missing_routes_first(
    cluster: Cluster, answer: Answer, run: Run
) -> None:
    cluster.nodes.remove("starting")
    cluster.problems.clear()
    done, given = answer("explain", "198.51.100.7/32", "--all-nodes")
    assert done == 0
    assert [(item["node"], item["reason"]) for item in given["items"]] == [
        ("down", "SessionDown"),
        ("good", "Advertised"),
    ]
    done, given = answer("explain", "--all-nodes")
    assert [item["node"] for item in given["items"]] == ["down"]
    done, given = answer("explain", "--all-nodes", "--all")
    assert [item["node"] for item in given["items"]] == ["down", "good"]
    assert run("explain", "--node", "good")[2][0] == (
        "waggle explain: every route is advertised to every peer"
    )


def test_a_received_prefix_has_its_paths_and_the_route_of_the_kernel_of_each_node(
    cluster: Cluster, answer: Answer, run: Run
) -> None:
    cluster.nodes.remove("starting")
    cluster.problems.clear()
    words = ("explain", RECEIVED.prefix, "--received", "--all-nodes")
    done, given = answer(*words)
    assert done == 0
    assert {item["node"] for item in given["items"]} == {"good", "down"}
    assert sorted((path["node"], path["peer"]) for path in given["paths"]) == [
        ("down", "tor-1"),
        ("good", "tor-1"),
    ]
    assert [(item["node"], item["state"]) for item in given["kernel"]] == [("good", "Installed")]
    _, table, _ = run(*words)
    paths, kernel = table.index(["Paths:"]), table.index(["In", "the", "kernel:"])
    assert table[paths + 1][:2] == ["NODE", "PREFIX"]
    assert {row[0] for row in table[paths + 2 : kernel] if row} == {"good", "down"}
    assert table[kernel + 2][:3] == ["good", "254", RECEIVED.prefix]


SOURCE = "BGPSessionState/w/x"


def reported(node: str, name: str, state: str) -> dict[str, Any]:
    given = UP if state == "Established" else DOWN
    item: dict[str, Any] = msgspec.to_builtins(
        {**given, "node": node, "name": name, "state": state}
    )
    return item | {"source": SOURCE}


def test_without_agents_the_sessions_come_from_status_objects(
    cluster: Cluster, answer: Answer, run: Run
) -> None:
    sessions = {"good": [reported("good", "tor-1", "Established")]}
    sessions["far"] = [reported("far", "tor-2", "Active"), reported("far", "tor-4", "Established")]
    cluster.statuses = StatusSessions(sessions, [])
    done, given = answer("peers", "--from-statuses")
    assert (done, cluster.namespaces) == (0, [])
    assert [(item["node"], item["name"]) for item in given["items"]] == [
        ("far", "tor-2"),
        ("far", "tor-4"),
        ("good", "tor-1"),
    ]
    assert (given["summary"]["nodes"], given["summary"]["answered"]) == (2, 0)
    done, given = answer("peers", "--from-statuses", "--peer", "tor-1")
    assert [item["node"] for item in given["items"]] == ["good"]
    done, given = answer("peers", "--from-statuses", "--peer", "tor-44")
    assert (done, given["errors"][0]["message"]) == (
        4,
        "no peer is called tor-44 (did you mean tor-4?)",
    )
    done, given = answer("peers", "--from-statuses", "--node", "far")
    assert [item["node"] for item in given["items"]] == ["far", "far"]
    done, table, _ = run("status", "--from-statuses", "-o", "wide")
    assert done == 0
    assert [line[:4] for line in table[1:]] == [
        ["far", "-", "unknown", "1/2"],
        ["good", "-", "unknown", "1/1"],
    ]
    assert f"from {SOURCE}" in " ".join(table[1])


def test_of_a_node_without_an_answer_the_status_objects_are_shown(
    cluster: Cluster, answer: Answer
) -> None:
    sessions = {
        "good": [reported("good", "tor-5", "Active")],
        "pending": [reported("pending", "tor-2", "Active")],
    }
    cluster.statuses = StatusSessions(sessions, ["BGPSessionState/w/y: nonsense"])
    done, given = answer("peers", "--node", "good", "--node", "pending")
    assert done == 3
    assert [(item["node"], item["name"]) for item in given["items"]] == [
        ("pending", "tor-2"),
        ("good", "tor-1"),
    ]
    assert given["notes"] == ["BGPSessionState/w/y: nonsense"]
    assert given["summary"]["sessions"] == 2


def test_status_objects_that_cannot_be_read_hide_no_answer(
    cluster: Cluster, answer: Answer, run: Run
) -> None:
    cluster.statuses = AgentError("ClusterUnreachable", "away")
    done, given = answer("peers", "--all-nodes")
    assert (done, len(given["items"]), given["notes"]) == (3, 4, ["away"])
    assert run("peers", "--all-nodes")[2][:2] == [
        "waggle peers: pending: its Pod is Pending",
        "waggle peers: away",
    ]
    assert run("peers", "--from-statuses")[::2] == (1, ["waggle peers: away"])


def test_an_agent_of_which_nothing_answers_is_a_failure_of_its_node(
    cluster: Cluster, answer: Answer
) -> None:
    cluster.nodes.append("silent")
    done, given = answer("peers", "--all-nodes")
    assert done == 3
    assert [error["node"] for error in given["errors"]] == ["silent", "pending"]
    assert len(given["items"]) == 4


def test_whatever_reading_an_answer_raises_is_the_failure_of_its_node(cluster: Cluster) -> None:
    def request(_: object) -> None:
        raise KeyError("items")

    fleet = Fleet(cast("ClusterLoop", None), [AgentPod("n", Container("w", "p", "agent"))], 1.0)
    (failure,) = fleet.ask(request).failures
    assert (failure.node, failure.code) == ("n", "BadAnswer")
    assert failure.message == "its answer is not understood: KeyError: 'items'"


class Late:
    """A loop in which nothing ends in time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def run(self, work: Coroutine[Any, Any, Any], seconds: float) -> None:
        work.close()
        self.seconds.append(seconds)
        raise TimeoutError


async def _nothing() -> None: ...


def test_an_api_server_that_does_not_answer_in_time_is_an_error() -> None:
    loop = Late()
    with pytest.raises(AgentError, match="has not answered within 20 s") as raised:
        in_cluster(cast("ClusterLoop", loop), _nothing())
    assert (raised.value.code, loop.seconds) == ("ClusterUnreachable", [LIST_SECONDS])
    with pytest.raises(AgentError, match=r"within 0\.5 s"):
        in_cluster(cast("ClusterLoop", loop), _nothing(), 0.5)
