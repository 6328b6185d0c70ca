"""What commands read of an API server: Pods, answers by pods/exec, status objects, evidence for doctor.

The server is a stand-in (`tests.support.apiserver`); `test_fleet_apiserver` has a real one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cells.api.pod_transport import ClusterLoop
from cells.api.transport import AgentError
from reconcilers.dialect import ClusterEvidence
from reconcilers.dialect.diagnosis import Access as Right
from resources.cilium.kinds import NODE_CONFIG
from resources.frrk8s.kinds import BGP_SESSION_STATE, FRR_CONFIGURATION
from resources.kubernetes import Access, certificates
from resources.kubernetes.discovery import Discovery
from tests.support import looptime
from tests.support.apiserver import Answer, BackgroundApiServer, status, text
from tests.support.kinds import KINDS
from waggle.__main__ import main
from waggle.dialects import DIALECTS
from waggle.fleet.agents import SELECTOR, find_agents, read_kind, read_objects
from waggle.fleet.ask import in_cluster
from waggle.fleet.evidence import SECONDS, Cluster, _or, read_cluster
from waggle.fleet.statuses import NOT_IN_STATUS, read_statuses

Object = dict[str, Any]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


def given(value: Object, headers: dict[str, str] | None = None) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(value, headers=headers)

    return answer


def listed(*items: Object) -> Answer:
    return given({"kind": "List", "metadata": {}, "items": list(items)})


def exit_code(code: int) -> Object:
    return {
        "status": "Failure",
        "message": "command terminated with non-zero exit code",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


SUCCESS: Object = {"status": "Success"}


def command(result: Object | None, *pieces: bytes, errors: bytes = b"") -> Answer:
    """Answer pods/exec: standard output in pieces, standard error, and the result if there is one."""

    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        for piece in pieces:
            await socket.send_bytes(b"\1" + piece)
        if errors:
            await socket.send_bytes(b"\2" + errors)
        if result is not None:
            await socket.send_bytes(b"\3" + json.dumps(result).encode())
        await socket.close()
        return socket

    return answer


def pod(node: str) -> Object:
    return {
        "metadata": {"name": f"agent-{node}", "namespace": "w"},
        "spec": {"nodeName": node, "containers": [{"name": "agent"}]},
        "status": {"phase": "Running"},
    }


class Agents:
    """The Pods of agents and what the command in each of them answers."""

    def __init__(self, server: BackgroundApiServer) -> None:
        self.commands: dict[str, Answer] = {}
        self.queries: list[list[str]] = []
        self._server = server
        server.always("get", "pods", self._exec)
        server.always("list", "pods", self._list)
        self.lists: list[tuple[str, str]] = []

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self.lists.append((request.path, request.query["labelSelector"]))
        return await listed(*map(pod, self.commands))(request)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(request.query.getall("command"))
        assert request.query["container"] == "agent"
        return await self.commands[request.path.split("/")[-2].removeprefix("agent-")](request)


@pytest.fixture(name="server")
def _server() -> Iterator[BackgroundApiServer]:
    with BackgroundApiServer((*KINDS, BGP_SESSION_STATE, FRR_CONFIGURATION)) as server:
        yield server


@pytest.fixture(name="kubeconfig")
def _kubeconfig(server: BackgroundApiServer, tmp_path: Path) -> Path:
    return server.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture(name="loop")
def _loop(kubeconfig: Path) -> Iterator[ClusterLoop]:
    with ClusterLoop(Access(str(kubeconfig), None), 5.0) as loop:
        yield loop


def test_an_answer_comes_in_pieces_by_pods_exec(
    server: BackgroundApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = Agents(server)
    item: Object = {"node": "x", "instance": "default", "name": "tor-1", "state": "Established"}
    item |= {"localASN": 65000, "peerASN": 65001, "families": [], "address": "192.0.2.1"}
    body = {"apiVersion": "v1", "kind": "PeerList", "version": "1.0", "items": [item]}
    octets = json.dumps(
        body | {"generatedAt": datetime.now(UTC).isoformat(), "errors": []}
    ).encode()
    agents.commands["a"] = command(SUCCESS, OK[:9], OK[9:], octets[:20], octets[20:])
    # From a status of 400 on the command fails behind its answer, which is what is read.
    refused = json.dumps({"items": [], "errors": [{"code": "BadRequest", "message": "no"}]})
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n"
    agents.commands["b"] = command(exit_code(1), head + refused.encode())
    arguments = ["peers", "--all-nodes", "--kubeconfig", str(kubeconfig), "-n", "w", "-o", "json"]
    assert main([*arguments, "--peer", "tor-1"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert [(item["node"], item["name"]) for item in answer["items"]] == [("a", "tor-1")]
    assert answer["errors"] == [{"code": "BadRequest", "message": "no", "node": "b"}]
    assert agents.lists == [("/api/v1/namespaces/w/pods", SELECTOR)]
    assert agents.queries[0] == ["waggle", "api", "--include", "/v1/peers?peer=tor-1"]


FAILURES: dict[str, tuple[Answer, str, str]] = {
    "old": (
        command(exit_code(2), errors=b"waggle: invalid\n choice: 'api'\n"),
        "AgentTooOld",
        "its version has no command 'waggle api': waggle: invalid choice: 'api'",
    ),
    "without": (command(exit_code(127)), "AgentTooOld", "its version has no command"),
    "bare": (
        command({"status": "Failure", "message": "exec: executable file not found in $PATH"}),
        "AgentTooOld",
        "executable file not found",
    ),
    "broken": (
        command({"status": "Failure", "message": "the container is gone"}),
        "AgentUnreachable",
        "no command runs in w/agent-broken: the container is gone",
    ),
    "starting": (
        command(exit_code(1), errors=b"waggle api: no socket\n"),
        "AgentNotRunning",
        "no socket",
    ),
    "closed": (command(None), "AgentUnreachable", "closed before the command ended"),
    "foreign": (
        command(SUCCESS, b"hello\r\n\r\n"),
        "BadAnswer",
        "w/agent-foreign does not answer like an agent",
    ),
    "gone": (
        status(404, "NotFound", "x"),
        "AgentNotRunning",
        "the Pod w/agent-gone does not exist",
    ),
    "forbidden": (
        status(403, "Forbidden", "x"),
        "Forbidden",
        "not allowed to get and create pods/exec in namespace w",
    ),
    "unknown": (
        status(401, "Unauthorized", "x"),
        "Forbidden",
        "the API server rejects the credentials",
    ),
    "kubelet": (
        status(502, "x", "dial"),
        "AgentUnreachable",
        "it may not reach the node's kubelet",
    ),
}


def test_each_way_to_fail_has_its_code_and_its_words(
    server: BackgroundApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = Agents(server)
    agents.commands = {node: failure[0] for node, failure in FAILURES.items()}
    assert main(["peers", "--all-nodes", "--kubeconfig", str(kubeconfig), "-n", "w", "-o", "json"])
    errors = {error["node"]: error for error in json.loads(capsys.readouterr().out)["errors"]}
    codes = {node: error["code"] for node, error in errors.items()}
    assert codes == {node: code for node, (_, code, _) in FAILURES.items()}
    for node, (_, _, words) in FAILURES.items():
        assert words in errors[node]["message"]


def test_a_silent_agent_is_given_up_after_its_time(
    server: BackgroundApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        await socket.receive()
        return socket

    Agents(server).commands["a"] = silent
    arguments = ["--kubeconfig", str(kubeconfig), "--timeout", "0.2", "-o", "json"]
    assert main(["peers", "--all-nodes", *arguments]) == 3
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["code"], error["message"]) == ("TimedOut", "no complete answer within 0.2 s")


def test_a_namespace_without_agents_is_named(
    server: BackgroundApiServer, loop: ClusterLoop
) -> None:
    Agents(server)
    with pytest.raises(
        AgentError, match=r"no Pods of agents in namespace x .*see --namespace"
    ) as no:
        in_cluster(loop, find_agents(loop.connection, "x"))
    assert no.value.code == "NoAgents"


@pytest.mark.parametrize(
    ("code", "error"), [(403, "Forbidden"), (404, "NotServed"), (500, "ClusterUnreachable")]
)
def test_a_list_that_fails_has_its_path_and_the_reason(
    server: BackgroundApiServer, loop: ClusterLoop, code: int, error: str
) -> None:
    server.always("list", "pods", status(code, "x", "because"))
    with pytest.raises(AgentError, match=r"^/api/v1/pods: because$") as failed:
        in_cluster(loop, read_objects(loop.connection, "/api/v1/pods"))
    assert failed.value.code == error


def test_an_answer_that_is_not_json_is_an_error(
    server: BackgroundApiServer, loop: ClusterLoop
) -> None:
    server.always("list", "pods", text(200, "<html>"))
    with pytest.raises(AgentError) as failed:
        in_cluster(loop, read_objects(loop.connection, "/api/v1/pods"))
    assert failed.value.code == "ClusterUnreachable"


def session_state(name: str, **state: str) -> Object:
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "BGPSessionState",
        "metadata": {"name": name, "namespace": "w"},
        "status": {"node": "n", "peer": "192.0.2.1", "bgpStatus": "Active", **state},
    }


def test_a_kind_is_read_in_the_version_that_is_served(
    server: BackgroundApiServer, loop: ClusterLoop
) -> None:
    server.put(session_state("a"))

    def read() -> list[Object]:
        discovery = Discovery(loop.connection, 5.0)
        return in_cluster(loop, read_kind(loop.connection, discovery, BGP_SESSION_STATE))

    assert [value["metadata"]["name"] for value in read()] == ["a"]
    # Without the right to read the served versions, it is the version of today.
    server.always("list", "", status(403, "Forbidden", "no"))
    assert [value["metadata"]["name"] for value in read()] == ["a"]
    server.always("list", "", status(500, "x", "broken"))
    with pytest.raises(AgentError, match="broken") as failed:
        read()
    assert failed.value.code == "ClusterUnreachable"


def test_a_kind_that_is_not_served_is_named(kubeconfig: Path) -> None:
    with BackgroundApiServer((NODE_CONFIG,)) as server:
        access = Access(str(server.kubeconfig(kubeconfig.with_name("other"))), None)
        with ClusterLoop(access, 5.0) as loop:
            discovery = Discovery(loop.connection, 5.0)
            with pytest.raises(AgentError, match="the API server has no BGPSessionState") as failed:
                in_cluster(loop, read_kind(loop.connection, discovery, BGP_SESSION_STATE))
            assert failed.value.code == "NotServed"


def test_sessions_of_status_objects_have_their_object_and_a_reason(
    server: BackgroundApiServer, loop: ClusterLoop
) -> None:
    server.put(session_state("a"), session_state("b", bgpStatus="Established", peer="192.0.2.2"))
    server.put(session_state("c", node="m", peer="192.0.2.3"))
    broken = session_state("d") | {"status": {"node": 7}}
    server.put(broken)
    read = in_cluster(loop, read_statuses(loop.connection, DIALECTS.load()))
    assert {node: [one["source"] for one in ones] for node, ones in read.by_node.items()} == {
        "n": ["BGPSessionState/w/a", "BGPSessionState/w/b"],
        "m": ["BGPSessionState/w/c"],
    }
    first, second = read.by_node["n"]
    assert (first["state"], first["reason"], first["families"]) == ("Active", NOT_IN_STATUS, [])
    assert (second["state"], second.get("reason")) == ("Established", None)
    assert [error.partition(":")[0] for error in read.errors] == ["BGPSessionState/w/d"]


def test_status_objects_that_may_not_be_listed_stop_no_others(
    server: BackgroundApiServer, loop: ClusterLoop
) -> None:
    server.put(session_state("a"))
    server.always("list", NODE_CONFIG.plural, status(403, "Forbidden", "not you"))
    read = in_cluster(loop, read_statuses(loop.connection, DIALECTS.load()))
    assert list(read.by_node) == ["n"]
    assert [error.rpartition(": ")[2] for error in read.errors] == ["not you"]
    server.always("list", NODE_CONFIG.plural, status(500, "x", "broken"))
    with pytest.raises(AgentError, match="broken"):
        in_cluster(loop, read_statuses(loop.connection, DIALECTS.load()))


class Examined:
    """An API server as doctor reads it."""

    def __init__(self, server: BackgroundApiServer) -> None:
        self.reviews: list[Object] = []
        self.version: Answer = given({"gitVersion": "v1.33.1"})
        self._server = server
        server.put({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "worker-1"}})
        server.put(session_state("a"))
        server.always("list", "", self._root)
        server.always("create", "selfsubjectaccessreviews", self._review)
        made = certificates.due(None, datetime.now(UTC), ["x"], published=False)
        assert made is not None
        webhook = {"name": "w.waggle", "clientConfig": {"caBundle": made.data["tls.crt"]}}
        other = {"name": "x.waggle", "clientConfig": {}}
        self.webhooks = listed({"metadata": {"name": "waggle"}, "webhooks": [webhook, other]})
        server.always("list", "validatingwebhookconfigurations", self.webhooks)

    async def _root(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            return await self.version(request)
        return await self._server._server.usual(request)

    async def _review(self, request: web.Request) -> web.StreamResponse:
        review = await request.json()
        self.reviews.append(review)
        asked = review["spec"]["resourceAttributes"]
        allowed = asked["verb"] == "list"
        return web.json_response(review | {"status": {"allowed": allowed}}, status=201)


Read = Callable[[], ClusterEvidence]


@pytest.fixture(name="read")
def _read(loop: ClusterLoop, kubeconfig: Path) -> Read:
    dialects = DIALECTS.load()
    kinds = (FRR_CONFIGURATION,)
    cluster = Cluster(loop.connection, "w", str(kubeconfig), None, dialects, kinds)
    return lambda: in_cluster(loop, read_cluster(cluster), 30.0)


def test_doctor_reads_version_rights_nodes_objects_and_certificates(
    server: BackgroundApiServer, read: Read
) -> None:
    examined = Examined(server)
    value = {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "f", "namespace": "w"},
        "spec": {},
    }
    server.put(value)
    evidence = read()
    assert (evidence.error, evidence.unread, evidence.version) == ("", {}, "v1.33.1")
    assert evidence.access == (
        Right("list", "pods", "w", True),
        Right("create", "pods/exec", "w", False),
        Right("get", "pods/exec", "w", False),
    )
    assert examined.reviews[1] == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": "w",
                "verb": "create",
                "resource": "pods",
                "subresource": "exec",
            }
        },
    }
    assert "subresource" not in examined.reviews[0]["spec"]["resourceAttributes"]
    assert evidence.nodes == frozenset({"worker-1"})
    assert [one["metadata"]["name"] for one in evidence.objects["FRRConfiguration"]] == ["f"]
    assert list(evidence.sessions) == ["n"]
    assert evidence.served >= {
        "frrconfigurations.frrk8s.metallb.io",
        "ciliumbgpnodeconfigs.cilium.io",
    }
    assert evidence.missing == frozenset()
    assert evidence.answer_seconds > 0
    (authority,) = evidence.certificates
    assert authority.name == "the authority of the webhook w.waggle"
    assert authority.remedy == "the leading operator renews it: see its log and health"


def test_the_clock_of_the_api_server_is_compared_by_the_date_of_its_answer(
    server: BackgroundApiServer, read: Read
) -> None:
    examined = Examined(server)
    date = format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)
    examined.version = given({"gitVersion": "v1"}, {"Date": date})
    ahead = read().clock_ahead
    assert ahead is not None
    assert ahead < -86400


def test_what_cannot_be_read_is_named_and_the_rest_is_read(
    server: BackgroundApiServer, read: Read
) -> None:
    Examined(server)
    server.always("create", "selfsubjectaccessreviews", text(200, "<html>"))
    server.always("list", "nodes", status(403, "Forbidden", "not you"))
    server.always("list", FRR_CONFIGURATION.plural, status(403, "Forbidden", "not these"))
    server.always("list", NODE_CONFIG.plural, status(403, "Forbidden", "nor these"))
    server.always("list", "validatingwebhookconfigurations", status(403, "Forbidden", "nor those"))
    evidence = read()
    assert (evidence.version, evidence.nodes, evidence.access) == ("v1.33.1", None, ())
    assert evidence.objects == {"FRRConfiguration": []}
    assert set(evidence.unread) == {"rights", "nodes", "objects", "statuses", "certificates"}
    assert "not you" in evidence.unread["nodes"]
    assert "not these" in evidence.unread["objects"]
    assert "nor these" in evidence.unread["statuses"]
    assert "nor those" in evidence.unread["certificates"]
    assert list(evidence.sessions) == ["n"]


def test_a_kind_that_is_missing_beside_others_of_its_group_is_named(
    server: BackgroundApiServer, loop: ClusterLoop, kubeconfig: Path
) -> None:
    Examined(server)
    server._server.served[BGP_SESSION_STATE.plural] = ()
    kinds = (FRR_CONFIGURATION, BGP_SESSION_STATE)
    cluster = Cluster(loop.connection, "w", str(kubeconfig), None, DIALECTS.load(), kinds)
    evidence = in_cluster(loop, read_cluster(cluster), 30.0)
    assert evidence.answer_seconds is not None
    assert 0 <= evidence.answer_seconds < 30
    assert evidence.missing == {"bgpsessionstates.frrk8s.metallb.io"}
    assert evidence.objects["BGPSessionState"] == []
    assert evidence.unread == {}


@pytest.mark.parametrize("code", [401, 500])
def test_an_api_server_that_refuses_its_version_is_all_that_is_known(
    server: BackgroundApiServer, read: Read, code: int
) -> None:
    Examined(server).version = status(code, "x", "refused")
    evidence = read()
    assert "refused" in evidence.error
    assert evidence == ClusterEvidence(error=evidence.error)


def test_doctor_has_the_agents_beside_the_cluster(
    server: BackgroundApiServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Examined(server)
    agents = Agents(server)
    agents.commands["a"] = command(exit_code(1), errors=b"waggle api: no socket\n")
    arguments = ["doctor", "--all-nodes", "--kubeconfig", str(kubeconfig), "-n", "w", "-o", "json"]
    assert main(arguments) == 1
    answer = json.loads(capsys.readouterr().out)
    results = {(item["check"], item.get("node", "")): item for item in answer["items"]}
    assert "no socket" in results["agents", "a"]["evidence"]
    assert (answer["summary"]["nodes"], answer["summary"]["answered"]) == (1, 0)
    agents.commands.clear()
    assert main(arguments) == 1
    assert "no Pods of agents" in capsys.readouterr().out
    assert main([*arguments, "--from-statuses"]) == 1
    assert "no Pods of agents" not in capsys.readouterr().out


def test_a_kind_is_missing_only_beside_others_that_checks_read(
    server: BackgroundApiServer, read: Read
) -> None:
    Examined(server)
    server._server.served[FRR_CONFIGURATION.plural] = ()
    assert read().missing == frozenset()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AgentError("Forbidden", "not allowed"), "not allowed"),
        (AgentError("NotServed", "has no such path"), None),
        (KeyError("metadata"), "KeyError: 'metadata'"),
    ],
)
def test_a_part_that_cannot_be_read_has_its_reason_and_the_default(
    error: Exception, reason: str | None
) -> None:
    async def failing() -> str:
        raise error

    async def answering() -> str:
        return "read"

    unread: dict[str, str] = {}
    assert asyncio.run(_or("none", answering(), unread, "nodes")) == "read"
    assert unread == {}
    assert asyncio.run(_or("none", failing(), unread, "nodes")) == "none"
    assert unread == ({} if reason is None else {"nodes": reason})


def test_a_part_has_twice_the_time_of_a_request() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        began, unread = loop.time(), dict[str, str]()
        assert await _or("none", asyncio.sleep(600, "late"), unread, "nodes") == "none"
        assert loop.time() - began == pytest.approx(2 * SECONDS)
        assert unread == {"nodes": "no answer in time"}

    looptime.run(scenario())
