"""Faults as docs/runbook.md has them: planted with real speakers, named by ``doctor`` or ``explain``.

One agent has a peer for each fault of a session; `tests/reconcilers/doctor` has the faults of clusters.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from resources.frrk8s.kinds import BGP_SESSION_STATE, FRR_CONFIGURATION
from tests.cmd.lab import NODE, PYTHON, configuration, service
from tests.support import plain_yaml, without_md5
from tests.support.agent import Agent
from tests.support.apiserver import BackgroundApiServer, status
from tests.support.daemon import Daemon
from tests.support.kinds import KINDS
from tests.support.ports import free_port
from tests.support.wait import eventually
from waggle.__main__ import main
from waggle.fleet import evidence

pytestmark = pytest.mark.program

RUNBOOK = "tests/cmd/test_runbook.py"
FLEET = "tests/cmd/test_fleet_apiserver.py"
OF_A_SESSION = "test_doctor_names_a_fault_of_a_session"
OF_A_SERVICE = "test_explain_names_what_stands_in_the_way_of_a_service"
OF_A_CLUSTER = "test_a_clock_and_a_certificate_of_a_cluster_are_named"

PLANTED = {
    "The router refuses connections": (RUNBOOK, OF_A_SESSION, '("port", REFUSED, "refused")'),
    "A TCP MD5 password on one end": (RUNBOOK, OF_A_SESSION, '("md5", PASSWORD,'),
    "Ends disagree on an AS number": (RUNBOOK, OF_A_SESSION, '("asns", AS_NUMBER,'),
    "Two routers with one router ID": (RUNBOOK, OF_A_SESSION, '("router-ids", ROUTER_ID,'),
    "The port is taken": (RUNBOOK, OF_A_SESSION, '("port", LISTENING, "address already in use")'),
    "A Service is not selected": (RUNBOOK, OF_A_SERVICE, '("shop/hidden",'),
    "A Service has no endpoint on the node": (RUNBOOK, OF_A_SERVICE, '("shop/web",'),
    "A silent agent": (
        FLEET,
        "test_doctor_reads_the_cluster_and_names_the_faults",
        'results["agents", "fleet-silent"]',
    ),
    "A clock that is wrong": (RUNBOOK, OF_A_CLUSTER, '{"Date": format_datetime('),
    "A right is missing": (
        RUNBOOK,
        "test_a_right_that_an_agent_lacks_is_named",
        'server.always("list", "services", ',
    ),
    "A certificate expires": (RUNBOOK, OF_A_CLUSTER, "client_certificate(timedelta(days=2))"),
    "A path that loses long packets": (
        "tests/reconcilers/doctor/test_checks.py",
        "test_a_fault_is_one_finding",
        'id="a path that loses long packets"',
    ),
    "A status object is stale": (
        FLEET,
        "test_sessions_come_from_the_status_objects_alone",
        "good has Active, the agent",
    ),
    "The kernel lacks support": (
        RUNBOOK,
        "test_a_kernel_without_tcp_md5_is_named_where_a_peer_has_a_password",
        '"tests.support.without_md5"',
    ),
}
"""The faults of the runbook: file and name of the test that plants each, and the text with which."""

LISTENING = "listening"
REFUSED, PASSWORD, AS_NUMBER, ROUTER_ID = "tor-1", "tor-2", "tor-3", "tor-4"


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    """Listen on a port of all addresses, as another BGP speaker of the node does; yields it."""
    with socket.create_server(("0.0.0.0", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent with four peers, none of which comes up."""
    directory = tmp_path_factory.mktemp("runbook")
    ports = [free_port(f"127.0.0.{number + 1}") for number in range(1, 5)]
    objects = configuration(ports)
    routers = []
    for number, fault in ((2, {"password": "secret"}), (3, {"asn": 64999}), (4, {})):
        neighbor = {"address": "127.0.0.1", "asn": 65001, "passive": True, "import": "all", **fault}
        config = {
            "asn": 65000,
            "routerID": "192.0.2.11" if number == 4 else f"192.0.2.{number}",
            "listen": [{"address": f"127.0.0.{number + 1}", "port": ports[number - 1]}],
            "neighbors": [neighbor],
        }
        path = directory / f"router-{number}.json"
        path.write_text(json.dumps(config))
        command: list[str | Path] = [*PYTHON, "waggle", "router", "-c", path]
        routers.append(Daemon(f"router {number}", command, log=directory / f"router-{number}.log"))
    web, shop = service("web", "198.51.100.7"), service("hidden", "198.51.100.8")
    shop["metadata"]["labels"] = {"expose": "false"}
    web["spec"]["externalTrafficPolicy"] = "Local"
    agent = Agent(None, directory / "agent", node=NODE)
    with contextlib.ExitStack() as stack:
        (rack,) = [item for item in objects if item["kind"] == "CiliumBGPClusterConfig"]
        listening = {"name": LISTENING, "localASN": 65002}
        listening |= {"localPort": stack.enter_context(taken_port()), "peers": []}
        rack["spec"]["bgpInstances"].append(listening)
        agent.write_objects("cluster.json", *objects, web, shop)
        for daemon in (*routers, agent.daemon):
            stack.callback(daemon.stop)
            daemon.start()
        agent.wait_ready()
        yield agent


def doctor(agent: Agent) -> dict[str, list[dict[str, Any]]]:
    """Return the findings by check."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["doctor", "--socket", str(agent.socket), "-o", "json"]) == 1
    findings: dict[str, list[dict[str, Any]]] = {}
    for item in json.loads(printed.getvalue())["items"]:
        if item["result"] in ("error", "warning"):
            findings.setdefault(item["check"], []).append(item)
    return findings


@pytest.mark.parametrize(
    ("check", "name", "evidence"),
    [
        ("port", REFUSED, "refused"),
        ("md5", PASSWORD, "this node has no TCP MD5 password"),
        ("asns", AS_NUMBER, "Bad Peer AS"),
        ("router-ids", ROUTER_ID, "router ID 192.0.2.11 is that of node-1"),
        ("port", LISTENING, "address already in use"),
    ],
)
def test_doctor_names_a_fault_of_a_session(
    agent: Agent, check: str, name: str, evidence: str
) -> None:
    def check_findings() -> None:
        findings = doctor(agent).get(check, [])
        named = [f for f in findings if f.get("object") == name and evidence in f["evidence"]]
        assert named, doctor(agent)
        assert named[0]["remedy"]

    eventually(check_findings, interval=0.3, context=agent.daemon.tail)


@pytest.mark.parametrize(
    ("target", "evidence"),
    [("shop/hidden", "expose=true"), ("shop/web", "no ready endpoint")],
)
def test_explain_names_what_stands_in_the_way_of_a_service(
    agent: Agent, target: str, evidence: str
) -> None:
    def check_explanation() -> None:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert main(["explain", target, "--socket", str(agent.socket)]) == 0
        assert evidence in printed.getvalue()

    eventually(check_explanation, context=agent.daemon.tail)


@pytest.mark.skipif(without_md5.SETSOCKOPT is None, reason="no filter for this machine")
def test_a_kernel_without_tcp_md5_is_named_where_a_peer_has_a_password(tmp_path: Path) -> None:
    objects = configuration([free_port("127.0.0.2")])
    (peer,) = [item for item in objects if item["kind"] == "CiliumBGPPeerConfig"]
    peer["spec"]["authSecretRef"] = "tor-1"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "tor-1", "namespace": "kube-system"},
        "stringData": {"password": "s3cret"},
    }
    agent = Agent(None, tmp_path / "agent", node=NODE, program=("tests.support.without_md5",))
    agent.write_objects("cluster.json", *objects, secret)
    agent.start()
    try:
        agent.wait_ready()

        def check_findings() -> None:
            found = doctor(agent).get("kernel", [])
            assert [f["evidence"] for f in found] == [
                "peers have TCP MD5 passwords, which this kernel does not support"
            ]
            assert "CONFIG_TCP_MD5SIG" in found[0]["remedy"]

        eventually(check_findings, interval=0.3, context=agent.daemon.tail)
    finally:
        agent.stop()


@pytest.fixture(name="server")
def _server() -> Iterator[BackgroundApiServer]:
    with BackgroundApiServer((*KINDS, BGP_SESSION_STATE, FRR_CONFIGURATION)) as server:
        yield server


def test_a_right_that_an_agent_lacks_is_named(server: BackgroundApiServer, tmp_path: Path) -> None:
    message = 'services is forbidden: User "waggle-agent" cannot list resource "services"'
    server.always("list", "services", status(403, "Forbidden", message))
    for item in configuration([1]):
        server.put(item)
    kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
    agent = Agent(None, tmp_path / "agent", node=NODE, kubeconfig=kubeconfig)
    agent.start()
    try:
        agent.wait_ready()

        def check_findings() -> None:
            findings = doctor(agent).get("rbac", [])
            assert [f for f in findings if "may not list services" in f["evidence"]], findings
            assert findings[0]["remedy"]

        eventually(check_findings, interval=0.3, context=agent.daemon.tail)
    finally:
        agent.stop()


def client_certificate(lasting: timedelta) -> str:
    """Return a certificate that was made a year ago and has so much time left, in base64."""
    now = datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "person")])
    made = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=now - timedelta(days=365),
        not_valid_after=now + lasting,
    ).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def test_a_clock_and_a_certificate_of_a_cluster_are_named(
    server: BackgroundApiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    late = datetime.now(UTC) - timedelta(seconds=90)

    async def root(request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            version = {"gitVersion": "v1.33.1"}
            date = {"Date": format_datetime(late, usegmt=True)}
            return web.json_response(version, headers=date)
        return await server._server.usual(request)

    server.always("list", "", root)
    kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
    document = plain_yaml.load(kubeconfig.read_text())
    (user,) = document["users"]
    user["user"]["client-certificate-data"] = client_certificate(timedelta(days=2))
    other = tmp_path / "other"
    other.write_text(yaml.safe_dump(document))
    # Each request has its time, which the machine may have for another process.
    for name in ("SECONDS", "CONNECT_SECONDS", "CLUSTER_SECONDS"):
        monkeypatch.setattr(evidence, name, 60.0)
    assert main(["doctor", "--all-nodes", "--kubeconfig", str(other), "-o", "json"]) == 1
    findings = {
        item["check"]: item["evidence"]
        for item in json.loads(capsys.readouterr().out)["items"]
        if item["result"] in ("error", "warning")
    }
    assert "behind" in findings["clock"], findings
    assert "expires in" in findings["tls"], findings


def source_of_test(file: str, name: str) -> str:
    """Return the text of one test with its parameters, and of nothing else in its file."""
    text = Path(file).read_text()
    (test,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    first = min([test.lineno, *(decorator.lineno for decorator in test.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : test.end_lineno])


@pytest.mark.parametrize("fault", PLANTED)
def test_each_fault_of_the_runbook_is_planted_by_a_test(fault: str) -> None:
    """All with real programs, but for the path that loses long packets.

    Its check has what agents answer of such a session as evidence (made up): in a test a hold time
    would have to end three times.
    """
    file, name, line = PLANTED[fault]
    assert name.startswith("test_")
    assert line in source_of_test(file, name), (file, name, line)


def test_the_faults_are_in_the_runbook() -> None:
    faults, _, _ = Path("docs/runbook.md").read_text().partition("\n# Alerts\n")
    headings = [line.removeprefix("## ") for line in faults.splitlines() if line.startswith("## ")]
    assert headings == list(PLANTED)


def test_the_table_of_faults_is_the_source_of_no_test() -> None:
    texts = [source_of_test(file, name) for file, name, _ in PLANTED.values()]
    assert not [fault for fault in PLANTED for text in texts if f'"{fault}": (' in text]
    with pytest.raises(ValueError, match="not enough values"):
        source_of_test(RUNBOOK, "test_that_is_removed")
