"""What commands show of all nodes, without a cluster: Pods, statuses, the summary and the order."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from cells.api.client import Client
from cells.api.streamed_list import StreamedList
from cells.api.transport import AgentError
from reconcilers.cilium.reported_sessions import reported as cilium_sessions
from reconcilers.frrk8s.reported_sessions import reported as frrk8s_sessions
from resources.kubernetes import certificates
from tests.cmd.test_peers import UP
from tests.support.api import MadeUp, serving
from waggle.__main__ import main
from waggle.fleet import routes, view
from waggle.fleet.agents import DEFAULT_CONTAINER, agent_pod, one_of_each_node
from waggle.fleet.evidence import of_kubeconfig, read_node
from waggle.fleet.statuses import StatusSessions
from waggle.fleet.summary import RECEIVED_AT, summarize
from waggle.fleet.view import FleetView, checked, in_order, worst_sessions_first
from waggle.output import member
from waggle.tables import Column

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def pod(name: str, phase: str = "Running", **spec: object) -> dict[str, Any]:
    containers = [{"name": "agent"}]
    metadata = {"name": name, "namespace": "w"}
    return {
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
        "status": {"phase": phase},
    }


def answer(version: str | None = "1.0", ahead: float = 0) -> dict[str, Any]:
    time = (NOW + timedelta(seconds=ahead)).isoformat()
    return {"generatedAt": time, "items": []} | ({"version": version} if version else {})


def test_a_pod_that_waits_for_its_node_is_the_agent_of_that_node() -> None:
    field = {"key": "metadata.name", "values": ["worker-1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    agent = agent_pod(pod("waggle-agent-x", "Pending", affinity=affinity))
    assert (agent.node, agent.problem) == ("worker-1", "its Pod is Pending")


def test_a_crashing_container_is_named_in_place_of_asked() -> None:
    waiting = {"name": "agent", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    crashing = pod("a", nodeName="n") | {"status": {"containerStatuses": [waiting]}}
    assert agent_pod(crashing).problem == "its container is not running: CrashLoopBackOff"


def test_the_container_of_the_agent_alone_decides_whether_it_runs() -> None:
    ended = {"name": "sidecar", "state": {"terminated": {"reason": "Completed"}}}
    running = {"name": "agent", "state": {"running": {}}}
    given = pod("a", nodeName="n")
    assert not agent_pod(
        given | {"status": given["status"] | {"containerStatuses": [ended, running]}}
    ).problem
    without_reason = {"name": "agent", "state": {"terminated": {}}}
    crashed = agent_pod(given | {"status": {"containerStatuses": [ended, without_reason]}})
    assert crashed.problem == "its container is not running: terminated"


def test_a_pod_of_which_little_is_known_is_named_by_itself() -> None:
    agent = agent_pod({"metadata": {"name": "waggle-agent-x"}})
    assert (agent.node, agent.problem) == ("waggle-agent-x", "its Pod is Unknown")
    assert (agent.container.namespace, agent.container.name) == ("", "agent")


def test_an_unscheduled_pod_has_a_reason_and_a_terminating_pod_is_not_queried() -> None:
    conditions = [
        {"type": "Ready", "status": "True", "message": "x"},
        {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"},
    ]
    pending = pod("a", nodeName="n") | {"status": {"phase": "Pending", "conditions": conditions}}
    assert agent_pod(pending).problem == "its Pod is Pending: 0/3 nodes are available"
    going = pod("a", nodeName="n")
    going["metadata"]["deletionTimestamp"] = "2026-11-23T12:00:00Z"
    assert agent_pod(going).problem == "its Pod a is being deleted"


def test_of_two_pods_of_a_node_the_running_one_is_asked() -> None:
    pods = [pod("a", "Pending", nodeName="n"), pod("b", nodeName="n"), pod("c", nodeName="m")]
    agents = one_of_each_node(map(agent_pod, pods))
    assert [(agent.node, agent.container.pod) for agent in agents] == [("m", "c"), ("n", "b")]


def test_the_summary_has_sessions_nodes_versions_and_clocks() -> None:
    answers = {"a": answer(), "b": answer("0.9"), "c": answer(None, ahead=-40), "d": answer()}
    states = [{"state": "Established"}, {"state": "Established"}, {"state": "Active"}]
    summary = summarize(answers, ["e"], NOW, states)
    assert list(summary.lines()) == [
        "2 of 3 sessions Established; 4 of 5 nodes answered",
        "agents have different versions: 1.0 on 2 nodes, 0.9 on b, unknown on c",
        "c: its clock is 40 s behind this host's",
    ]
    assert summary.members()["versions"] == {"1.0": 2, "0.9": 1, "unknown": 1}
    assert summary.members()["clockSkewSeconds"] == {"c": -40}


def test_a_view_without_sessions_has_nodes_and_the_version() -> None:
    assert list(summarize({"a": answer()}, [], NOW).lines()) == [
        "1 of 1 node answered; version 1.0"
    ]


def test_the_node_with_most_sessions_down_is_first() -> None:
    def session(node: str, name: str, state: str) -> dict[str, Any]:
        return {"node": node, "instance": "i", "name": name, "state": state}

    sessions = [
        session("a", "1", "Established"),
        session("a", "2", "Active"),
        session("b", "1", "Idle"),
        session("b", "2", "Active"),
    ]
    ordered = [(s["node"], s["name"]) for s in worst_sessions_first(sessions)]
    assert ordered == [("b", "1"), ("b", "2"), ("a", "2"), ("a", "1")]


def test_the_status_of_a_node_config_has_its_sessions_with_the_reasons() -> None:
    reason = "main: peer tor-2: hold timer expired"
    down = {"type": "waggle.dev/SessionsDown", "status": "True", "message": reason}
    condition = {**down, "reason": "x", "lastTransitionTime": "2026-11-23T12:00:00Z"}
    counts = [{"afi": "ipv4", "safi": "unicast", "received": 3, "advertised": 1}]
    up = {"name": "tor-1", "peerAddress": "192.0.2.1", "peeringState": "established"}
    instance = {
        "name": "main",
        "localASN": 65000,
        "peers": [
            up | {"routeCount": counts},
            {"name": "tor-2", "peerAddress": "192.0.2.2", "peeringState": "active"},
        ],
    }
    status = {"bgpInstances": [instance], "conditions": [condition]}
    first, second = cilium_sessions({"metadata": {"name": "worker-1"}, "status": status})
    assert (first.node, first.state, first.local_asn) == ("worker-1", "Established", 65000)
    assert first.received is not None
    assert [(count.family, count.routes) for count in first.received] == [("ipv4-unicast", 3)]
    assert (second.state, second.reason) == ("Active", "hold timer expired")


def test_a_bgp_session_state_has_one_session_with_the_usual_address() -> None:
    peer = "2001-0db8-0000-0000-0000-0000-0000-0001"
    status = {"node": "worker-1", "peer": peer, "bgpStatus": "Active"}
    (session,) = frrk8s_sessions({"metadata": {"name": "x"}, "status": status})
    assert (session.node, session.address, session.state) == ("worker-1", "2001:db8::1", "Active")


def test_a_socket_and_all_nodes_are_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["peers", "--all-nodes", "--socket", "/x"]) == 2
    assert "--socket is of one agent" in capsys.readouterr().err


def test_the_plugin_of_kubectl_asks_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["status", "--kubeconfig", str(tmp_path / "none"), "-o", "json"]
    assert main(arguments, plugin=True) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["code"] == "ClusterUnreachable"
    assert "No such file" in error["message"]


def test_statuses_without_an_api_server_are_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--from-statuses", "--kubeconfig", str(tmp_path / "none"), "-o", "json"]
    assert main(["peers", *flags]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["code"] == "ClusterUnreachable"


def test_statuses_that_may_not_be_listed_are_incomplete(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def read(*_: object, **__: object) -> StatusSessions:
        return StatusSessions({}, ["/apis/cilium.io/v2/ciliumbgpnodeconfigs: forbidden"])

    monkeypatch.setattr(view, "read_statuses", read)
    assert main(["peers", "--from-statuses"]) == 3
    assert "ciliumbgpnodeconfigs: forbidden" in capsys.readouterr().err


def test_api_prints_an_answer_as_it_is(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    socket = tmp_path / "s"
    with serving(socket, MadeUp([UP])):
        assert main(["api", "--include", "/v1/peers?peer=tor-1", "--socket", str(socket)]) == 0
        head, _, body = capfdbinary.readouterr().out.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json")
        assert json.loads(body)["items"][0]["name"] == "tor-1"
        assert main(["api", "/v1/peers?x=1", "--socket", str(socket)]) == 1
        assert json.loads(capfdbinary.readouterr().out)["errors"][0]["code"] == "BadRequest"


def test_an_answer_is_as_old_as_it_came_and_not_as_the_slowest_node() -> None:
    waited = NOW + timedelta(seconds=30)
    came = answer() | {RECEIVED_AT: NOW}
    assert summarize({"a": came}, ["silent"], waited).clocks == {}


SESSION = {**UP, "state": "Established"}
VIEW = FleetView(
    kind="PeerList",
    request=lambda _: {},
    columns=lambda _: [Column("NAME", member("name"))],
    order=worst_sessions_first,
    sessions=lambda item: [item],
)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"generatedAt": "2026-11-23T12:00:00"},
        {"errors": None},
        {"errors": ["x"]},
        {"items": [{**SESSION, "state": ["Established"]}]},
    ],
    ids=["a time without zone", "no errors", "errors of another form", "a state that is a list"],
)
def test_nonsense_is_the_failure_of_its_node_alone(nonsense: dict[str, Any]) -> None:
    given = {**answer(), "items": [SESSION], **nonsense}
    with pytest.raises((TypeError, AttributeError)):
        checked(VIEW, given)


def test_answers_that_cannot_be_compared_are_in_order_of_nodes() -> None:
    notes: list[str] = []
    items = [{**SESSION, "node": node, "name": name} for node, name in (("b", "x"), ("a", 7))]
    worst_first = VIEW._replace(order=lambda items: sorted(items, key=lambda item: item["name"]))
    assert [item["node"] for item in in_order(worst_first, items, notes)] == ["a", "b"]
    assert "cannot be compared" in notes[0]


@pytest.mark.parametrize("annotation", ["sidecar", "gone"])
def test_the_container_of_the_agent_is_asked_whatever_others_there_are(annotation: str) -> None:
    given = pod("a", nodeName="n")
    given["spec"]["containers"] = [{"name": "sidecar"}, {"name": "agent"}]
    given["metadata"]["annotations"] = {DEFAULT_CONTAINER: annotation}
    assert agent_pod(given).container.name == "agent"


def test_at_most_eight_peers_of_a_node_are_asked_for_their_routes() -> None:
    peers = [
        {**UP, "name": f"tor-{n}", "received": [{"family": "v4", "routes": 3, "accepted": 0}]}
        for n in range(500)
    ]
    asked: list[str] = []

    class Agent:
        def get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
            asked.append(path)
            if path == "/v1/routes":
                return {"items": [{"peer": query["peer"]}]}
            return answer() | {"items": [{"node": "n", "peers": peers}]}

    evidence = read_node(cast("Client", Agent()), ())
    assert (len(evidence.received), len(asked)) == (8, 10)


def test_the_certificate_of_the_context_is_read_and_no_other(tmp_path: Path) -> None:
    made = certificates.due(None, NOW, ["x"], published=False)
    assert made is not None
    data = made.data["tls.crt"]
    mine, others = tmp_path / "mine", tmp_path / "others"
    for file, user in ((others, "old"), (mine, "me")):
        context = {"name": user, "context": {"cluster": "c", "user": user}}
        config = {
            "current-context": user,
            "contexts": [context],
            "users": [{"name": user, "user": {"client-certificate-data": data}}],
        }
        file.write_text(json.dumps(config))
    path = f"{mine}:{tmp_path / 'none'}:{others}"
    ((first,), (second,)) = (of_kubeconfig(path, context) for context in (None, "old"))
    assert first.name == f"the client certificate of user me in {mine}"
    assert second.name == f"the client certificate of user old in {others}"
    assert first.lifetime is not None


def test_routes_of_all_nodes_are_kept_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(routes, "MOST_ROUTES", 3)
    views: list[FleetView] = []

    def show(_: object, shown: FleetView) -> int:
        views.append(shown)
        return 0

    monkeypatch.setattr(routes, "show_fleet", show)

    class Agent:
        def get_list(self, _: str, __: object) -> StreamedList:
            return StreamedList(['{"items":[{"prefix":"a"},{"prefix":"b"}]}'], "items", Exception())

    agent = cast("Client", Agent())
    for arguments in ([], ["--count"]):
        assert main(["routes", "--all-nodes", *arguments]) == 0
    assert len(views[0].request(agent)["items"]) == 2
    with pytest.raises(AgentError, match="all nodes together have more than 3 routes"):
        views[0].request(agent)
    counted = [views[1].request(agent)["items"][0]["routes"] for _ in range(3)]
    assert counted == [2, 2, 2]  # none of them is kept


def test_a_certificate_in_a_file_is_found_beside_its_kubeconfig(tmp_path: Path) -> None:
    made = certificates.due(None, NOW, ["x"], published=False)
    assert made is not None
    (tmp_path / "me.crt").write_bytes(base64.b64decode(made.data["tls.crt"]))
    file = tmp_path / "config"
    config: dict[str, Any] = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "me"}}],
        "users": [{"name": "me", "user": {"client-certificate": "me.crt"}}],
    }
    file.write_text(json.dumps(config))
    (certificate,) = of_kubeconfig(str(file), None)
    assert certificate.name == f"the client certificate of user me in {file}"
    config["users"][0]["user"] = {"token": "t"}
    file.write_text(json.dumps(config))
    assert of_kubeconfig(str(file), None) == []
