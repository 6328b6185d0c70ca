"""``waggle plan --received`` against an agent: the routes that its peers announce, in the kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cells.api.model import RouteItem
from cells.api.resource import ApiResource
from cells.dialects import frrk8s
from reconcilers.compile_manifests import CompiledManifests, OfflineSettings, kinds_of
from reconcilers.kernel.options import FibOptions
from reconcilers.plan import state_items
from reconcilers.plan.kernel_inputs import KernelInputs, received_of
from resources.host import Device, Host
from resources.manifests.load import load
from tests.support.api import MadeUp, serving
from waggle.__main__ import main

HOST = Host((Device("eth0", addresses=("192.0.2.11",), networks=("192.0.2.0/24",)),))
DIALECTS = (frrk8s.DIALECT.load(),)
Plan = Callable[..., int]


def neighbor(number: int, *prefixes: str) -> dict[str, Any]:
    rules = [{"prefix": prefix} for prefix in prefixes]
    accepting = {"allowed": {"prefixes": rules}}
    return {"address": f"192.0.2.{number}", "asn": 65100 + number, "toReceive": accepting}


def write(directory: Path, *neighbors: dict[str, Any]) -> Path:
    """Write the manifests of an FRRConfiguration with these neighbors."""
    directory.mkdir()
    item = {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "tor", "namespace": "frr-k8s-system"},
        "spec": {
            "bgp": {"routers": [{"asn": 65001, "id": "192.0.2.11", "neighbors": [*neighbors]}]}
        },
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    for name, document in (("node", node), ("tor", item)):
        (directory / f"{name}.json").write_text(json.dumps(document))
    return directory


def received(number: int, prefix: str, **values: Any) -> RouteItem:  # noqa: ANN401
    given = {"as_path": str(65100 + number), "next_hop": f"192.0.2.{number}", "origin": "igp"}
    return RouteItem(
        node="n1",
        instance="default",
        peer=f"192.0.2.{number}",
        family="ipv4-unicast",
        prefix=prefix,
        **(given | values),
    )


class Agent(MadeUp):
    """An agent with this intent, whose peers announce these routes."""

    def __init__(self, compiled: CompiledManifests, *routes: RouteItem, **values: Any) -> None:  # noqa: ANN401
        super().__init__(routes=routes, **values)
        self._compiled = compiled
        snapshot = compiled.db.snapshot()
        self.inputs = KernelInputs(
            options=FibOptions(metric=55),
            installing=("frrk8s",),
            host=HOST,
            instances=tuple(compiled.intent.instances.all(snapshot)),
            peers=tuple(compiled.intent.peers.all(snapshot)),
        )

    def intent(self) -> Iterator[Sequence[dict[str, Any]]]:
        yield [{"node": "n1", "bfd": False}]
        snapshot = self._compiled.db.snapshot()
        yield from state_items(snapshot, self._compiled.intent, self._compiled.state())

    def kernel(self) -> ApiResource:
        return ApiResource(
            path="/v1/kernel-inputs",
            kind="KernelInputList",
            read=lambda _: list(self.inputs.items()),
        )


def compile_dir(directory: Path) -> CompiledManifests:
    loaded = load([str(directory)], kinds_of(DIALECTS))
    return CompiledManifests(loaded, DIALECTS, OfflineSettings("n1", bfd=False))


def test_a_plan_has_the_changes_in_the_kernel_of_what_the_peers_announce(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(tmp_path / "before", neighbor(1, "10.1.0.0/16", "10.2.0.0/16"), neighbor(2))
    after = write(tmp_path / "after", neighbor(1, "10.2.0.0/16", "10.3.0.0/16"))
    routes = [received(1, prefix) for prefix in ("10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16")]
    # The session of this peer goes with the change, and its routes with it.
    agent = Agent(compile_dir(before), *routes, received(2, "10.4.0.0/16"))
    socket = tmp_path / "agent.sock"
    command = ["plan", "-f", str(after), "--socket", str(socket), "-o", "json", "--received"]
    with serving(socket, agent, agent.kernel()):
        assert main(command) == 1
        (item,) = json.loads(capsys.readouterr().out)["items"]
        of_table = {"table": 254, "metric": 55}
        assert item["kernel"] == [
            {**of_table, "prefix": "10.1.0.0/16", "change": "remove"},
            {**of_table, "prefix": "10.3.0.0/16", "change": "install"},
        ]
        file = tmp_path / "received.json"
        file.write_text(json.dumps({"192.0.2.1": [{"prefix": "10.3.0.0/16"}]}))
        assert main([*command, str(file)]) == 1
        (item,) = json.loads(capsys.readouterr().out)["items"]
        assert [route["prefix"] for route in item["kernel"]] == ["10.3.0.0/16"]
        file.write_text(json.dumps({"192.0.2.9": [{"prefix": "10.3.0.0/16"}]}))
        assert main([*command, str(file)]) == 2
        (error,) = json.loads(capsys.readouterr().out)["errors"]
        assert "the node has no peer 192.0.2.9, before and after" in error["message"]


def test_routes_that_an_agent_only_counts_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(tmp_path / "before", neighbor(1, "10.1.0.0/16"))
    counted = {"family": "ipv4-unicast", "routes": 9, "notKept": 7}
    peer = {"instance": "default", "name": "192.0.2.1", "received": [counted]}
    agent = Agent(compile_dir(before), received(1, "10.1.0.0/16"), peers=[peer])
    socket = tmp_path / "agent.sock"
    with serving(socket, agent, agent.kernel()):
        assert main(["plan", "-f", str(before), "--socket", str(socket), "--received"]) == 0
    assert capsys.readouterr().err == (
        "waggle plan: routes that are not kept (--keep-received) are not known: "
        "7 of peer 192.0.2.1\n"
    )


def test_an_agent_that_leaves_the_kernel_alone_has_no_such_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(tmp_path / "before", neighbor(1))
    socket = tmp_path / "agent.sock"
    with serving(socket, Agent(compile_dir(before))):
        assert main(["plan", "-f", str(before), "--socket", str(socket), "--received"]) == 2
        assert "installs no routes in the kernel (--fib)" in capsys.readouterr().err
        assert main(["plan", "-f", str(before), "--socket", str(socket), "--bfd"]) == 2
        assert "--bfd: only with --from or --from-cluster" in capsys.readouterr().err
    assert (
        main(["plan", "-f", str(before), "--from", str(before), "--received", "--node", "n1"]) == 2
    )
    assert "--received: a FILE, except against a running agent" in capsys.readouterr().err


def test_inputs_arrive_as_they_are_without_passwords(tmp_path: Path) -> None:
    secret = {**neighbor(1, "10.1.0.0/16"), "password": "not-to-be-seen"}
    agent = Agent(compile_dir(write(tmp_path / "with", secret)))
    octets = msgspec.json.encode(list(agent.inputs.items()))
    assert b"not-to-be-seen" not in octets
    arrived = KernelInputs.of_items(msgspec.json.decode(octets))
    without = tuple(
        msgspec.structs.replace(row, password=None, held_password=None)
        for row in agent.inputs.peers
    )
    assert arrived == msgspec.structs.replace(agent.inputs, peers=without)


def test_routes_of_the_api_are_routes_of_a_peer() -> None:
    item = received(1, "10.1.0.0/16", as_path="65101 {65010 65011}", med=3, local_preference=200)
    received_routes = received_of([msgspec.to_builtins(item)])
    ((peer, (route,)),) = received_routes.items()
    assert peer == ("default", "192.0.2.1")
    assert (route.as_path, route.med, route.local_preference) == ((65101, 65010, 65011), 3, 200)
    assert (route.prefix, route.next_hop, route.origin) == ("10.1.0.0/16", "192.0.2.1", "igp")
