"""The source on a real API server: its lists, its watches, its 410, its RBAC and its CRDs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from resources.core.kinds import SECRET
from resources.kubernetes import Access, KubernetesSource, Phase, Selection, Timeouts, of_node
from tests.resources.kubernetes.objects import advertisement, service
from tests.resources.kubernetes.source.reading import Reader
from tests.support.kinds import KINDS
from tests.support.kubernetes.server import KubeApiServer
from tests.support.relay import Relay
from tests.support.wait import until

pytestmark = pytest.mark.apiserver

TIMEOUTS = Timeouts(
    page_size=3,
    first_retry=0.05,
    longest_retry=0.5,
    confirm_list=0.1,
    missing_kind=0.2,
    longest_missing=0.5,
    forbidden_grace=0.5,
)
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "listed"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ciliumbgpadvertisements.cilium.io"},
    "spec": {
        "group": "cilium.io",
        "scope": "Cluster",
        "names": {"plural": "ciliumbgpadvertisements", "kind": "CiliumBGPAdvertisement"},
        "versions": [
            {
                "name": "v2alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def run(scenario: Callable[[], Awaitable[None]], seconds: float = 250) -> None:
    """Run a scenario in a loop of its own."""

    async def main() -> None:
        async with asyncio.timeout(seconds):
            await scenario()

    asyncio.run(main())


async def ask(server: KubeApiServer, method: str, path: str, body: object = None) -> dict[str, Any]:
    """Ask as the administrator, without holding up the loop."""
    answer = await asyncio.to_thread(server.request, method, path, body)
    assert answer.ok, answer
    return answer.body


async def restart(server: KubeApiServer) -> None:
    """Start it anew; from this thread, as it ends with the thread that started it."""
    await asyncio.to_thread(server.stop_server)
    await asyncio.sleep(0.2)
    server.start_server()


async def shop(server: KubeApiServer) -> None:
    """Make the namespace anew."""
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}}
    await asyncio.to_thread(server.request, "POST", "/api/v1/namespaces", namespace)
    for item in (await ask(server, "GET", SERVICES))["items"]:
        await ask(server, "DELETE", f"{SERVICES}/{item['metadata']['name']}")


async def create(server: KubeApiServer, name: str) -> None:
    body = service(name, "ClusterIP", NAMESPACE)
    body["spec"]["ports"] = [{"port": 80}]
    await ask(server, "POST", SERVICES, body)


def reader(kubeconfig: Path) -> Reader:
    wanted = dict(of_node(KINDS, "n1").selections)
    wanted["Service"] = Selection(namespaces=(NAMESPACE,))
    source = KubernetesSource(Access(str(kubeconfig)), KINDS, wanted, timeouts=TIMEOUTS)
    source.follow(SECRET, [("kube-system", "bgp-passwords")])
    return Reader(source)


def through(relay: Relay, server: KubeApiServer, directory: Path) -> Path:
    """Write a kubeconfig that leads through the relay."""
    config = json.loads(server.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
    path = directory / "relayed"
    path.write_text(json.dumps(config))
    return path


def test_objects_are_listed_in_pages_and_watched(apiserver: KubeApiServer) -> None:
    async def scenario() -> None:
        await shop(apiserver)
        for i in range(7):
            await create(apiserver, f"s{i}")
        async with reader(apiserver.kubeconfig) as observed:
            await until(lambda: len(observed.names()) == 7)
            await until(lambda: all(observed.events.values()))
            await create(apiserver, "late")
            await until(lambda: "late" in observed.names())
            await ask(apiserver, "DELETE", f"{SERVICES}/s3")
            await until(lambda: "s3" not in observed.names())
            assert observed.replacements() == 1
            assert not observed.problems

    run(scenario)


def test_changes_during_an_outage_are_read_after_410(
    apiserver: KubeApiServer, tmp_path: Path
) -> None:
    """The history is compacted and the server's cache is new: only a list shows deletions."""

    async def scenario() -> None:
        await shop(apiserver)
        for name in ("web", "old"):
            await create(apiserver, name)
        relay = Relay(int(apiserver.url.rpartition(":")[2]))
        await relay.open()
        async with reader(through(relay, apiserver, tmp_path)) as observed:
            await until(lambda: observed.names() == {"web", "old"})
            await relay.cut()
            await until(lambda: observed.phase(f"Service/{NAMESPACE}") is Phase.FAILING)
            await ask(apiserver, "DELETE", f"{SERVICES}/old")
            await create(apiserver, "new")
            listed = await ask(apiserver, "GET", SERVICES)
            await asyncio.to_thread(apiserver.compact, listed["metadata"]["resourceVersion"])
            await restart(apiserver)
            assert observed.names() == {"web", "old"}
            await relay.open()
            await until(lambda: observed.names() == {"web", "new"})
            assert observed.replacements() == 2
            await until(lambda: observed.phase(f"Service/{NAMESPACE}") is Phase.FOLLOWING)
        await relay.cut()

    run(scenario)


def test_a_service_changed_during_an_api_server_restart_is_read_afterwards(
    apiserver: KubeApiServer,
) -> None:
    async def scenario() -> None:
        await shop(apiserver)
        await create(apiserver, "web")
        async with reader(apiserver.kubeconfig) as observed:
            await until(lambda: observed.names() == {"web"})
            await restart(apiserver)
            await create(apiserver, "new")
            await ask(apiserver, "DELETE", f"{SERVICES}/web")
            await until(lambda: observed.names() == {"new"})

    run(scenario)


def test_a_crd_that_comes_later_is_read_from_then_on(apiserver: KubeApiServer) -> None:
    async def scenario() -> None:
        await shop(apiserver)
        name = f"{CRDS}/{DEFINITION['metadata']['name']}"  # type: ignore[index]
        await asyncio.to_thread(apiserver.request, "DELETE", name)
        async with reader(apiserver.kubeconfig) as observed:
            kind = "CiliumBGPAdvertisement"
            await until(lambda: kind in observed.statuses)
            await until(lambda: observed.phase(kind) is Phase.MISSING)
            await ask(apiserver, "POST", CRDS, DEFINITION)
            await until(lambda: observed.phase(kind) is Phase.FOLLOWING)
            path = "/apis/cilium.io/v2alpha1/ciliumbgpadvertisements"
            body = advertisement("pods") | {"apiVersion": "cilium.io/v2alpha1"}
            await ask(apiserver, "POST", path, body)
            await until(lambda: observed.names(kind) == {"pods"})
            # Deleting the definition deletes its objects first, and that is observed.
            await ask(apiserver, "DELETE", name)
            await until(lambda: observed.names(kind) == set())
            await until(lambda: observed.phase(kind) is Phase.REMOVED)
        gone = await asyncio.to_thread(apiserver.request, "GET", name)
        assert gone.status == 404

    run(scenario)


def test_a_forbidden_list_names_verb_and_resource(apiserver: KubeApiServer, tmp_path: Path) -> None:
    async def scenario() -> None:
        await shop(apiserver)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}}
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        await asyncio.to_thread(apiserver.request, "POST", accounts, account)
        token = await ask(apiserver, "POST", f"{accounts}/agent/token", {"spec": {}})
        config = json.loads(apiserver.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token["status"]["token"]}
        path = tmp_path / "agent"
        path.write_text(json.dumps(config))
        async with reader(path) as observed:
            await until(lambda: "Secret/kube-system/bgp-passwords" in observed.statuses)
            await until(
                lambda: observed.phase("Secret/kube-system/bgp-passwords") is Phase.FORBIDDEN,
            )
            message = observed.statuses["Secret/kube-system/bgp-passwords"].message
            assert message.startswith("may not list secrets in namespace kube-system: ")
            assert f"system:serviceaccount:{NAMESPACE}:agent" in message
            slices = "may not list endpointslices.discovery.k8s.io"
            await until(lambda: slices in observed.statuses["EndpointSlice"].message)

    run(scenario)
