"""A whole agent on an API server writes the objects of its node, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest

from cells.declarations import SPEAKER
from cells.hive import Level, load, provide
from cells.hive.hive import Hive
from cells.report import node_objects
from cells.speaker.events import SpeakerEvents
from cells.speaker.sessions import Sessions
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.report.node_objects import objects
from reconcilers.target import write_spread
from resources.core import kinds as core
from resources.kind import Kinds
from speaker.api import SpeakerPort
from tests.cells.hurry import hurry
from tests.cells.stand_in_speaker import StandInSpeaker
from tests.reconcilers.metallb.objects import NAMESPACE, advertisement, peer, pool
from tests.reconcilers.metallb.test_node_objects import MARKED, service
from tests.support.apiserver import ApiServer
from tests.support.cells import rewired
from tests.support.wait import until
from waggle_agent.__main__ import CELLS

NODE = "n1"
ALL = Kinds(
    core.KINDS,
    MetalLBDialect.kinds,
    Frrk8sDialect.kinds,
    MetalLBDialect.all_kinds(),
    Frrk8sDialect.all_kinds(),
)
POD = {"namespace": NAMESPACE, "name": "waggle-agent-x", "uid": "pod-1"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes within the time of a test."""
    hurry(monkeypatch)
    monkeypatch.setattr(node_objects, "INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(objects, "SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(objects, "INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(objects, "LIST_SECONDS", 0.5)
    monkeypatch.setattr(node_objects, "POLL_SECONDS", 0.1)
    for module in (objects, write_spread):
        monkeypatch.setattr(module, "COUNT_INTERVAL_SECONDS", 0.05)


def run(
    directory: Path,
    scenario: Callable[[Hive, ApiServer], Awaitable[None]],
    prepare: Callable[[ApiServer], object] = lambda _: None,
    **flags: Any,  # noqa: ANN401
) -> None:
    """Run an agent with both dialects, and sessions that are Established at once."""
    speaker = rewired(
        SPEAKER,
        provides=(SpeakerEvents, Sessions, provide(StandInSpeaker, as_=SpeakerPort)),
        invokes=(Sessions,),
    )
    cells = tuple(speaker if cell is SPEAKER else cell for cell in CELLS)

    async def whole() -> None:
        async with ApiServer(ALL) as server:
            fill(server)
            prepare(server)
            given = {
                "--kubeconfig": str(server.kubeconfig(directory / "kubeconfig")),
                "--node-name": NODE,
                "--secrets-namespace": "",
                **{f"--node-pod-{name}": value for name, value in POD.items()},
                "enable_cell": ["frrk8s", "metallb"],
                "disable_cell": ["logging", "api", "cilium", "unused-objects"],
                **{f"--{name.replace('_', '-')}": value for name, value in flags.items()},
            }
            hive = Hive(cells, load(cells, flags=given))
            task = asyncio.create_task(hive.run())
            try:
                async with asyncio.timeout(120):
                    await scenario(hive, server)
            finally:
                hive.shutdown()
                await task

    asyncio.run(whole())


def fill(server: ApiServer) -> None:
    """Put in a node, its configuration and a Service."""
    metadata = {"name": NODE, "uid": "node-1"}
    server.put({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    for value in (
        peer("tor-a", "203.0.113.9", password=MARKED),
        pool("front", "198.18.30.0/24"),
        advertisement("plain"),
        *service("web", "198.18.30.5"),
    ):
        server.put(value)


def stored(server: ApiServer, plural: str) -> list[dict[str, Any]]:
    """Return the objects of a kind."""
    return list(server.objects[plural].values())


def statuses(server: ApiServer, plural: str) -> list[dict[str, Any]]:
    """Return the statuses of a kind."""
    return [one.get("status", {}) for one in stored(server, plural)]


def levels(hive: Hive) -> dict[str, tuple[Level, str]]:
    """Return level and message of the objects' health, by kind."""
    report = hive.health.scope("report").scope("objects").report()
    return {s.path[-1]: (s.level, s.message) for s in report}


def settled(server: ApiServer) -> bool:
    """True once everything is written."""
    return (
        statuses(server, "servicebgpstatuses") == [SERVICE]
        and [one.get("bgpStatus") for one in statuses(server, "bgpsessionstates")]
        == ["Established"]
        and [one.get("result") for one in statuses(server, "configurationstates")] == ["Valid"]
        # The first configuration that is written may be without the Secrets and peers.
        and [
            "password set" in one.get("runningConfig", "")
            for one in statuses(server, "frrnodestates")
        ]
        == [True]
    )


SERVICE = {
    "node": NODE,
    "serviceName": "web",
    "serviceNamespace": "shop",
    "peers": ["tor-a"],
}


def test_all_objects_of_the_node_are_written_with_names_labels_and_owners(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        await until(lambda: settled(server))
        (state,) = stored(server, "frrnodestates")
        assert state["metadata"]["name"] == NODE
        (session,) = stored(server, "bgpsessionstates")
        metadata = session["metadata"]
        assert metadata["name"].startswith("n1-")
        assert metadata["namespace"] == "frr-k8s-system"
        assert metadata["labels"] == {
            "frrk8s.metallb.io/node": NODE,
            "frrk8s.metallb.io/peer": "203.0.113.9",
            "frrk8s.metallb.io/vrf": "",
        }
        node_owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "node-1"}
        # The agent's Pod is in another namespace, and may own nothing here.
        assert metadata["ownerReferences"] == state["metadata"]["ownerReferences"] == [node_owner]
        (of_service,) = stored(server, "servicebgpstatuses")
        assert of_service["metadata"]["name"].startswith("bgp-")
        pod_owner = {"apiVersion": "v1", "kind": "Pod", "name": POD["name"], "uid": POD["uid"]}
        assert of_service["metadata"]["ownerReferences"] == [pod_owner]
        (configuration,) = stored(server, "configurationstates")
        assert configuration["metadata"]["name"] == "speaker-n1"
        assert configuration["metadata"]["labels"] == {
            "metallb.io/component-type": "speaker",
            "metallb.io/node-name": NODE,
        }
        assert "password set" in state["status"]["runningConfig"]
        written = [*map(str, (state, session, of_service, configuration))]
        assert not [text for text in written if MARKED in text]
        # Health follows at the end of the step that wrote the objects.
        kinds = ("ConfigurationState", "ServiceBGPStatus", "FRRNodeState", "BGPSessionState")
        fine = dict.fromkeys(("objects", *kinds), Level.OK)
        await until(lambda: {name: level for name, (level, _) in levels(hive).items()} == fine)

        # What changes is written, what goes is deleted, what is equal costs nothing.
        server.delete("Service", "web", "shop")
        server.put(peer("tor-a", "203.0.113.10"))
        await until(lambda: not stored(server, "servicebgpstatuses"))
        await until(
            lambda: (
                [one.get("peer") for one in statuses(server, "bgpsessionstates")]
                == ["203.0.113.10"]
            )
        )
        await until(lambda: "203.0.113.9" not in str(statuses(server, "frrnodestates")))
        lists = len(server.queries("list", "bgpsessionstates"))
        writes = [verb for verb, *_ in server.requests if verb in ("create", "patch", "delete")]
        await until(lambda: len(server.queries("list", "bgpsessionstates")) > lists + 2)
        again = [verb for verb, *_ in server.requests if verb in ("create", "patch", "delete")]
        assert again == writes

    run(tmp_path, scenario)


def test_what_others_left_behind_is_adopted_or_deleted_and_other_nodes_are_left(
    tmp_path: Path,
) -> None:
    def put(server: ApiServer, name: str, node: str, target: str) -> None:
        labels = {
            "metallb.io/node": node,
            "metallb.io/service-name": target,
            "metallb.io/service-namespace": "shop",
        }
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "speaker-x", "uid": "gone"}
        metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "labels": labels}
        server.put(
            {
                "apiVersion": "metallb.io/v1beta1",
                "kind": "ServiceBGPStatus",
                "metadata": {**metadata, "ownerReferences": [owner]},
                "status": {**SERVICE, "node": node, "serviceName": target},
            }
        )

    def prepare(server: ApiServer) -> None:
        put(server, "bgp-1", NODE, "web")
        put(server, "bgp-2", NODE, "web")
        put(server, "bgp-3", NODE, "deleted-long-ago")
        put(server, "bgp-4", "n2", "web")

    async def scenario(_: Hive, server: ApiServer) -> None:
        def check() -> bool:
            found = {one["metadata"]["name"]: one for one in stored(server, "servicebgpstatuses")}
            return sorted(found) == ["bgp-1", "bgp-4"] and (
                found["bgp-1"]["metadata"]["ownerReferences"][0]["uid"] == POD["uid"]
                and found["bgp-4"]["metadata"]["ownerReferences"][0]["uid"] == "gone"
            )

        await until(check)

    run(tmp_path, scenario, prepare)


def test_kinds_that_the_api_server_does_not_have_are_named_and_cost_few_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LIST_SECONDS", 0.1)

    def prepare(server: ApiServer) -> None:
        server.served["bgpsessionstates"] = ()

    async def scenario(hive: Hive, server: ApiServer) -> None:
        await until(lambda: bool(statuses(server, "servicebgpstatuses")))
        await until(lambda: len(server.queries("list", "bgpsessionstates")) > 2)
        missing = (
            "the API server does not have it (waggle crds BGPSessionState | kubectl create -f -)"
        )
        await until(lambda: levels(hive).get("BGPSessionState") == (Level.STOPPED, missing))
        assert not server.queries("create", "bgpsessionstates")
        server.served["bgpsessionstates"] = ("v1beta1",)
        await until(lambda: settled(server))
        await until(lambda: levels(hive)["BGPSessionState"][0] is Level.OK)

    run(tmp_path, scenario, prepare)


def test_switched_off_the_objects_of_the_node_are_removed(tmp_path: Path) -> None:
    def prepare(server: ApiServer) -> None:
        metadata = {"name": NODE, "uid": "s"}
        state = {"apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRNodeState"}
        server.put({**state, "metadata": metadata, "status": {"lastReloadResult": "success"}})

    async def scenario(hive: Hive, server: ApiServer) -> None:
        await until(lambda: not stored(server, "frrnodestates"))
        await until(
            lambda: (
                "switched off" in levels(hive).get("BGPSessionState", ("", "not reported yet"))[1]
            )
        )
        assert not server.queries("create", "bgpsessionstates")

    run(tmp_path, scenario, prepare, status_report="false")
