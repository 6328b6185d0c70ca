"""The `sh` blocks of docs/: each command is run, here or by another test, or has a reason why not."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.support.daemon import Daemon
from tests.support.kubernetes import assets
from tests.support.kubernetes.accounts import CRDS, put
from tests.support.kubernetes.server import api_server
from tests.support.ports import free_port
from tests.support.wait import eventually

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CONTAINERS = "needs a container runtime"
NODES = "needs the nodes of a real cluster"
SYSTEMD = "needs a host on which systemd runs, as it does on nodes"
LONG = "downloads and installs all dependencies: over a minute"
ELSEWHERE = re.compile(r"tests/[\w/]+\.py runs it")
NOT_RUN = {
    r"docker ": CONTAINERS,
    r"kind ": CONTAINERS,
    r"curl -sfL https://get.k3s.io": NODES,
    r"export KUBECONFIG=/etc/rancher": NODES,
    r"kubectl --namespace waggle-system rollout status": NODES,
    r"pipx install": LONG,
    r"(python3 -m venv|/opt/waggle/bin/)": LONG,
    r"waggle demo --once$": "tests/cmd/test_demo.py runs it, on ports of its own",
    r"(systemctl|journalctl)": SYSTEMD,
}
"""Beginnings of commands that no test runs as they are, with the reason."""
PAGES_NOT_RUN = {"kind.md": CONTAINERS}
BY_TEST_INSTALL = frozenset(
    re.findall(r'reader\.do\("([^"]+)"\)', (Path(__file__).parent / "test_install.py").read_text())
)
"""Sections of docs/install.md that tests/deploy/test_install.py runs."""


CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=node "
    "-keyout tls.key -out tls.crt"
)


class Command(NamedTuple):
    """One line of a block."""

    page: str
    section: str
    line: str

    @property
    def reason(self) -> str:
        """Why it is not run here; empty if it is."""
        if self.page == "install.md" and self.section in BY_TEST_INSTALL:
            return "tests/deploy/test_install.py runs it"
        found = (why for pattern, why in NOT_RUN.items() if re.match(pattern, self.line))
        return next(found, PAGES_NOT_RUN.get(self.page, ""))


def commands() -> Iterator[Command]:
    """Yield the commands of all blocks."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        for block in BLOCK.finditer(text):
            section = re.findall(r"^## +(.+)$", text[: block.start()], re.MULTILINE)
            for line in block[2].splitlines():
                stripped = re.sub(r"\s+#.*", "", line).strip()
                if stripped:
                    yield Command(page.name, section[-1] if section else "", stripped)


RUN = [command for command in commands() if not command.reason]
CLUSTER = [command for command in RUN if "kubectl" in command.line]
ROUTER = [command for command in RUN if "router.sock" in command.line]
ROOT_OF_HOST = [
    command for command in RUN if re.match("useradd|userdel|mkdir -p /etc|rm -r /etc", command.line)
]
AGENT = [
    command
    for command in RUN
    if re.match("waggle-agent|waggle api|waggle status --socket|curl", command.line)
    and command not in ROUTER
]
OFFLINE = [
    command
    for command in RUN
    if not any(command in others for others in (CLUSTER, ROUTER, ROOT_OF_HOST, AGENT))
]


def test_each_reason_is_that_of_a_command() -> None:
    lines = [command.line for command in commands()]
    for pattern in NOT_RUN:
        assert any(re.match(pattern, line) for line in lines), pattern
    for reason in {*NOT_RUN.values(), *PAGES_NOT_RUN.values()}:
        elsewhere = ELSEWHERE.match(reason)
        assert reason in {CONTAINERS, NODES, SYSTEMD, LONG} or elsewhere, reason
        assert elsewhere is None or (ROOT / elsewhere[0].split()[0]).is_file()
    assert len(BY_TEST_INSTALL) >= 6
    assert len(RUN) >= 9


class Shell(NamedTuple):
    """A shell in a copy of what a reader has."""

    folder: Path
    environment: dict[str, str]

    def run(self, line: str, *statuses: int) -> str:
        """Run a command, which may end with other statuses than 0 as well; returns its output."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode in {0, *statuses}, f"{line}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """The project's programs, its examples and its chart."""
    for name in ("deploy", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    # Agents of two tests listen on a port each.
    policy = tmp_path / "examples" / "antrea" / "policy.yaml"
    policy.write_text(policy.read_text().replace("1179", str(free_port("::"))))
    draft = ROOT / "tests" / "reconcilers" / "antrea" / "drafts"
    shutil.copy(next(iter(sorted(draft.rglob("*.yaml")))), tmp_path / "draft.yaml")
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("waggle", "waggle-agent"):
        path = programs / program
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m {program.replace("-", "_")} "$@"\n')
        path.chmod(0o755)
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "WAGGLE_API_SOCKET": str(tmp_path / "agent.sock"),
        "WAGGLE_HTTP_ADDRESS": "127.0.0.1:0",
        # There is no router, for which an agent would wait.
        "WAGGLE_READY_TIMEOUT_SECONDS": "1",
    }
    return Shell(tmp_path, environment)


@pytest.mark.program
@pytest.mark.parametrize("command", OFFLINE, ids=lambda command: f"{command.page}: {command.line}")
def test_a_command_without_agent_and_cluster_succeeds(shell: Shell, command: Command) -> None:
    writes_files = re.search(r">|--man ", command.line)
    assert shell.run(command.line) or writes_files


def own_agent(page: str) -> str:
    """Return the command of the agent that the commands of a page ask."""
    dialect, manifests = ("antrea", "antrea") if page == "antrea.md" else ("cilium", "quickstart")
    return (
        f"waggle-agent --manifests examples/{manifests} --node-name node-1 --enable-cell {dialect}"
    )


@contextlib.contextmanager
def running(shell: Shell, line: str) -> Iterator[Daemon]:
    """Run the agent of a command line."""
    agent = Daemon(
        "agent",
        ["bash", "-c", f"cd {shell.folder} && exec {line}"],
        log=shell.folder / "agent.log",
        environment=shell.environment,
    )
    agent.start()
    try:
        yield agent
    finally:
        agent.stop()


def starts_an_agent(command: Command) -> bool:
    return command.line.startswith("waggle-agent")


@pytest.mark.program
@pytest.mark.parametrize(
    "command",
    [command for command in AGENT if starts_an_agent(command)],
    ids=lambda command: f"{command.page}: {command.line}",
)
def test_a_command_starts_an_agent(shell: Shell, command: Command) -> None:
    line = command.line
    if "--page-certificate" in line:
        (shell.folder / "page-token").write_text("a token of the test\n")
        shell.run(CERTIFICATE)
        # What the page adds to the configuration of any agent, on a port that is free.
        line = f"{own_agent(command.page)} {line.removeprefix('waggle-agent ')}"
        line = line.replace("0.0.0.0:8443", "127.0.0.1:0")
    with running(shell, line) as agent:
        eventually(lambda: shell.run("waggle peers -o json"), context=agent.tail)


OWN_AGENTS = sorted({own_agent(command.page) for command in AGENT if not starts_an_agent(command)})


@pytest.mark.program
@pytest.mark.parametrize("own", OWN_AGENTS)
def test_the_commands_of_a_running_agent_succeed(shell: Shell, own: str) -> None:
    asked = [c for c in AGENT if not starts_an_agent(c) and own_agent(c.page) == own]
    with running(shell, own) as agent:
        for command in asked:
            line = command.line.replace(
                "/run/waggle/agent.sock", shell.environment["WAGGLE_API_SOCKET"]
            )
            # A status of 1: there is no router, to which its session could be up.
            statuses = [1] if "waggle status" in line else []

            def answered(line: str = line, statuses: list[int] = statuses) -> None:
                assert "ready      yes" in shell.run(line, *statuses) or not statuses

            eventually(answered, context=agent.tail)


@pytest.mark.program
@pytest.mark.parametrize("command", ROUTER, ids=lambda command: f"{command.page}: {command.line}")
def test_a_command_of_a_running_router_succeeds(shell: Shell, command: Command) -> None:
    socket = shell.folder / "router.sock"
    config = {"asn": 65000, "routerID": "192.0.2.1", "apiSocket": str(socket)}
    (shell.folder / "router.yaml").write_text(yaml.safe_dump(config))
    router = Daemon(
        "router",
        ["bash", "-c", f"cd {shell.folder} && exec waggle router -c router.yaml"],
        log=shell.folder / "router.log",
        environment=shell.environment,
    )
    router.start()
    try:
        there = command.line.replace("/run/waggle/router.sock", str(socket))
        eventually(lambda: shell.run(there), context=router.tail)
        assert "10.0.0.0/24" in shell.run("waggle router routes -c router.yaml")
    finally:
        router.stop()


PREPARED = """
mount -t tmpfs none /mnt
mkdir -p /mnt/etc/systemd/system
cp /etc/passwd /etc/group /etc/login.defs /mnt/etc
touch /mnt/etc/shadow /mnt/etc/gshadow /mnt/etc/systemd/system/waggle-agent.service
mount --bind /mnt/etc /etc
mount -t tmpfs none /opt
mount -t tmpfs none /var/lib
mkdir /opt/waggle /var/lib/waggle
"""
"""Directories of the host that the commands alone see, with what the page has made meanwhile."""


@pytest.mark.netns
@pytest.mark.program
def test_the_commands_of_a_host_succeed_one_after_the_other(shell: Shell) -> None:
    if shutil.which("useradd") is None:
        pytest.skip("there is no program useradd")
    made = ["getent passwd waggle", "test -d /etc/waggle/manifests"]
    gone = ['test -z "$(getent passwd waggle)"', "test ! -e /etc/waggle"]
    lines = [command.line for command in ROOT_OF_HOST]
    assert len(lines) == 4
    script = "\n".join(["set -eux", PREPARED, *lines[:2], *made, *lines[2:], *gone])
    (shell.folder / "host.sh").write_text(script)
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    shell.run(f"unshare {' '.join(rights)} --mount sh host.sh")


@pytest.fixture
def cluster(shell: Shell, tmp_path: Path) -> Iterator[Shell]:
    """A cluster of its own with Cilium's pools, and with the namespace of an example.

    The commands create definitions, which the shared server has already.
    """
    found = assets.find()
    if isinstance(found, str):
        pytest.skip(found)
    (shell.folder / "bin" / "kubectl").symlink_to(found.kubectl)
    directory = tmp_path / "apiserver"
    directory.mkdir()
    names = {"kind": "CiliumLoadBalancerIPPool", "plural": "ciliumloadbalancerippools"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    pools = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ciliumloadbalancerippools.cilium.io"},
        "spec": {"group": "cilium.io", "names": names, "scope": "Cluster", "versions": [version]},
    }
    with api_server(found, directory) as server:
        shell.environment["KUBECONFIG"] = str(server.kubeconfig)
        put(server, CRDS, pools)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        put(server, "/api/v1/namespaces", namespace)
        yield shell


@contextlib.contextmanager
def operator(cluster: Shell) -> Iterator[None]:
    """Run the operator, which publishes the addresses of the nodes in its namespace."""
    program = Daemon(
        "operator",
        [
            sys.executable,
            "-m",
            "waggle_operator",
            "--kubeconfig",
            cluster.environment["KUBECONFIG"],
            "--enable-cell",
            "cilium",
            "--lease-namespace",
            "waggle-system",
            "--http-address",
            "127.0.0.1:0",
        ],
        log=cluster.folder / "operator.log",
    )
    program.start()
    try:
        yield
    finally:
        program.stop()


POLICY = {
    "apiVersion": "cilium.io/v2alpha1",
    "kind": "CiliumBGPPeeringPolicy",
    "metadata": {"name": "rack0"},
    "spec": {
        "virtualRouters": [
            {"localASN": 65001, "neighbors": [{"peerAddress": "192.0.2.1/32", "peerASN": 65000}]}
        ]
    },
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "page-commands"}}


@pytest.mark.apiserver
@pytest.mark.program
@pytest.mark.timeout(300)
def test_the_commands_of_a_cluster_succeed_one_after_the_other(cluster: Shell) -> None:
    assert len(CLUSTER) >= 5
    creates = [command for command in CLUSTER if "create -f" in command.line]
    for number, command in enumerate(creates):
        if number:
            # What is there stays, which kubectl reports as an error.
            with pytest.raises(AssertionError, match="AlreadyExists"):
                cluster.run(command.line)
        else:
            cluster.run(command.line)
    eventually(
        lambda: cluster.run("kubectl get ciliumbgppeeringpolicies,ciliumloadbalancerippools"),
    )
    (cluster.folder / "objects.yaml").write_text(yaml.safe_dump_all([POLICY, NODE]))
    cluster.run("kubectl apply -f objects.yaml")
    for command in CLUSTER:
        if "waggle-cluster-addresses" in command.line:
            with operator(cluster):
                eventually(functools.partial(cluster.run, command.line))
        elif command not in creates:
            cluster.run(command.line)
    assert "CiliumBGPClusterConfig" in (cluster.folder / "v2.yaml").read_text()
    cluster.run("kubectl delete -f objects.yaml")
