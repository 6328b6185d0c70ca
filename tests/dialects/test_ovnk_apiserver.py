"""RouteAdvertisements on a real API server: definitions, the operator with ``generate``, two agents.

One operator serves the tests in their order. Objects are applied and read with kubectl, as people do;
annotations of Nodes are written by HTTP, as OVN-Kubernetes does. ``OVNK_EDITS`` is the number of random
edits, and ``OVNK_SEED`` their seed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from itertools import starmap
from pathlib import Path
from typing import Any, Final

import pytest

from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.ovnk.kinds import (
    CLUSTER_NETWORK,
    EGRESS_IP,
    ROUTE_ADVERTISEMENTS,
    USER_NETWORK,
    VTEP,
)
from tests.dialects.ovnk_edits import (
    ADDRESSES,
    DEFINITIONS,
    FABRIC,
    KEY,
    KINDS,
    NAMESPACES,
    NETWORKS,
    PLACES,
    RED,
    ROW,
    ROWS,
    SUBNETS,
    Edits,
    Json,
    Model,
    addressed_node,
    advertisers_in,
    apply,
    attachments,
    by_http,
    by_kubectl,
    delete,
    generated_in,
    namespace,
)
from tests.reconcilers.ovnk.operator_cluster import (
    FRR,
    source,
)
from tests.resources.ovnk import test_kinds as rules
from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import CRDS, define, put, undefine
from tests.support.kubernetes.server import KubeApiServer
from tests.support.netns import DEVICE, Namespace, linked_namespaces, nodes_at
from tests.support.relay import BackgroundRelay
from tests.support.routers import PeerSettings, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.bird import Bird
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

OVNK: Final = "clustermanager-routeadvertisements-controller"
QUIET: Final = 5.0
"""Seconds in which a write would have come."""


INSTALLING: Final = "w1"
"""The node whose agent installs routes in its kernel."""
LEARNED, NOT_PERMITTED = ("172.20.0.0/16", "172.20.7.0/24"), "172.21.0.0/16"
EDITS: Final = int(os.environ.get("OVNK_EDITS", "6"))
SEED: Final = int(os.environ.get("OVNK_SEED", "1"))


@pytest.fixture(scope="module")
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    names = define(apiserver, KINDS)
    for value in DEFINITIONS:
        put(apiserver, CRDS, value)
        names.append(value["metadata"]["name"])
    for name in (FRR, "ovn-kubernetes", "red-ns"):
        put(apiserver, NAMESPACES, namespace(name))
    for path in (attachments("red-ns"), PLACES["EgressIP"], PLACES["UplinkState"]):
        eventually(functools.partial(_serves, apiserver, path))
    yield apiserver
    undefine(apiserver, names)
    for name in ("w1", "w2"):
        apiserver.request("DELETE", f"/api/v1/nodes/{name}")


def _serves(server: KubeApiServer, path: str) -> None:
    assert server.request("GET", path).ok


def _check(objects: list[Json], prefixes: dict[str, list[str]], status: str, reason: str) -> None:
    """Check the generated objects, the status of the RouteAdvertisements, and the attachments."""
    generated = generated_in(objects)
    assert {
        name: one["spec"]["bgp"]["routers"][0]["prefixes"] for name, one in generated.items()
    } == prefixes
    assert set(advertisers_in(objects).values()) == {'["north"]'}
    _check_status(objects, status, reason)


def _check_status(objects: list[Json], status: str, reason: str) -> None:
    rows = {
        one["metadata"]["name"]: one for one in objects if one["kind"] == ROUTE_ADVERTISEMENTS.name
    }
    found = rows["north"].get("status", {})
    assert found.get("status", "").startswith(status), found
    (condition,) = found["conditions"]
    assert (condition["type"], condition["reason"]) == ("Accepted", reason)


def test_the_definitions_take_what_the_rules_take(server: KubeApiServer) -> None:
    def answer(kind: Any, value: dict[str, Any]) -> Any:  # noqa: ANN401
        body = {"apiVersion": kind.api_versions[0], "kind": kind.name, **value}
        place = PLACES.get(kind.name)
        if kind is USER_NETWORK:
            place = "/apis/k8s.ovn.org/v1/namespaces/red-ns/userdefinednetworks"
        return server.request("POST", f"{place}?dryRun=All", body)

    for kind, value in rules.ACCEPTED:
        if kind in KINDS:
            found = answer(kind, value)
            assert found.ok, (value, found.body)
    # Overlaps, prefixes and families are rules of the programs alone.
    of_row_alone = (
        "cidr", "cidrs[0]", "cidrs[1]", "hostSubnet", "subnets[1]", "subnets", "mtu", "mode",
        "reservedSubnets[0]", "defaultGatewayIPs", "defaultGatewayIPs[0]", "macVRF", "ipVRF", "values",
    )  # fmt: skip
    for kind, value, field in rules.REJECTED:
        found = answer(kind, value)
        assert not found.ok or field.rpartition(".")[2] in of_row_alone, (field, value)
    _check_changes(server)
    labels = {"matchLabels": {"advertise": True}}
    selector = {**rules.CLUSTERS, "clusterUserDefinedNetworkSelector": {"networkSelector": labels}}
    assert not answer(ROUTE_ADVERTISEMENTS, rules.advertisements(networkSelectors=[selector])).ok


def _check_changes(server: KubeApiServer) -> None:
    """Apply a network with kubectl, and changes of it: subnets are added, and nothing is removed."""

    def apply(*subnets: str, **spec: Any) -> None:  # noqa: ANN401
        value = {"apiVersion": "k8s.ovn.org/v1", "kind": CLUSTER_NETWORK.name}
        value |= rules.layer3(subnets=[{"cidr": cidr, "hostSubnet": 24} for cidr in subnets])
        value["spec"].update(spec)  # type: ignore[attr-defined]
        server.kubectl("apply", "-f", "-", text=json.dumps(value))

    apply("10.60.0.0/16", uplinks=["leaf"])
    apply("10.60.0.0/16", "10.62.0.0/16", uplinks=["leaf"])
    with pytest.raises(RuntimeError, match="subnets cannot be removed"):
        apply("10.62.0.0/16", uplinks=["leaf"])
    for uplinks in ({}, {"uplinks": ["spine"]}):
        with pytest.raises(RuntimeError, match="is immutable"):
            apply("10.60.0.0/16", "10.62.0.0/16", **uplinks)
    server.kubectl("delete", CLUSTER_NETWORK.plural, "n")


@pytest.fixture(scope="module")
def operator(server: KubeApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """An operator with ``generate``, and what it generates of."""
    # OVN-Kubernetes has written the annotation before.
    red = copy.deepcopy(RED)
    red["metadata"]["annotations"][KEY] = '["former"]'
    apply(server, red, *starmap(addressed_node, SUBNETS.items()), source(), ROW)
    running = Daemon(
        "waggle-operator",
        [
            *(sys.executable, "-m", "waggle_operator", "--ovnk", "generate", "--ovnk-evpn"),
            *("--enable-cell", "frrk8s,ovnk", "--disable-cell", "cilium"),
            *("--kubeconfig", server.kubeconfig),
            *("--lease-duration-seconds", "300", "--renew-deadline-seconds", "290"),
        ],
        log=tmp_path_factory.mktemp("operator") / "log",
    )
    running.start()
    yield running
    running.stop()


def test_the_operator_generates_and_follows_changes(
    server: KubeApiServer, operator: Daemon
) -> None:
    of_w1, of_w2 = ["10.180.4.0/23", "10.61.3.0/24"], ["10.180.6.0/23", "10.61.4.0/24"]
    both = {"north/spine/w1": of_w1, "north/spine/w2": of_w2}

    def metadata(prefixes: dict[str, list[str]], status: str, reason: str) -> Json:
        """Return the metadata of the generated objects once they are right."""

        def check(read: Callable[[KubeApiServer], list[Json]]) -> list[Json]:
            objects = read(server)
            _check(objects, prefixes, status, reason)
            return objects

        eventually(lambda: check(by_http), within=90, context=operator.tail)
        return {name: one["metadata"] for name, one in generated_in(check(by_kubectl)).items()}

    before = metadata(both, "Accepted", "Accepted")
    assert {*advertisers_in(by_http(server))} == {("red-ns", "red"), ("ovn-kubernetes", "default")}
    others = {**SUBNETS["w2"], "default": ["10.180.8.0/23"]}
    put(server, "/api/v1/nodes", addressed_node("w2", others))
    changed = {**both, "north/spine/w2": ["10.180.8.0/23", "10.61.4.0/24"]}
    after = metadata(changed, "Accepted", "Accepted")
    w1, w2 = "north/spine/w1", "north/spine/w2"
    assert after[w1]["resourceVersion"] == before[w1]["resourceVersion"]
    assert after[w2]["name"] == before[w2]["name"]
    put(server, "/api/v1/nodes", addressed_node("w2", "{"))
    error = "Not Accepted: configuration error: node w2"
    metadata(changed, error, "ConfigurationError")
    put(server, "/api/v1/nodes", addressed_node("w2", SUBNETS["w2"]))
    metadata(both, "Accepted", "Accepted")


def test_networks_and_vteps_have_conditions(server: KubeApiServer, operator: Daemon) -> None:
    def check(kind: Any, name: str, expected: str) -> None:  # noqa: ANN401
        path = "jsonpath={.status.conditions[*].type} {.status.conditions[*].reason}"
        assert server.kubectl("get", kind.plural, name, "-o", path) == expected

    server.kubectl("apply", "-f", "-", text=NETWORKS)
    accepted = "TransportAccepted NoOverlayTransportAccepted"
    for kind, name, expected in (
        (CLUSTER_NETWORK, "red", accepted),
        (VTEP, "fabric", "Accepted AllocationFailed"),
    ):
        eventually(
            lambda: check(kind, name, expected),  # noqa: B023
            context=operator.tail,
        )
    server.kubectl("delete", "-f", "-", text=NETWORKS)


@pytest.mark.interop
@pytest.mark.netns
@pytest.mark.timeout(300 + 20 * EDITS)
def test_the_fabric_has_what_an_operator_that_starts_then_would_have_advertised(
    server: KubeApiServer, operator: Daemon, no_namespaces: str | None, tmp_path: Path
) -> None:
    if reason := no_namespaces or Bird.missing():
        pytest.skip(reason)
    port = int(server.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(linked_namespaces())
        places = stack.enter_context(nodes_at(link, [FABRIC], list(ADDRESSES.values())))
        agents = {}
        for name, place in zip(ADDRESSES, places, strict=True):
            stack.enter_context(BackgroundRelay(port, place))
            agents[name] = Agent(
                place,
                tmp_path / name,
                node=name,
                kubeconfig=server.kubeconfig,
                arguments=[
                    *("--enable-cell", "frrk8s,ovnk", "--disable-cell", "cilium"),
                    "--status-report=false",
                ],
                kernel=name == INSTALLING,
            )
        peers = tuple(
            PeerSettings(address, 64710, passive=False, families=(IPV4,), multihop=2, hold_time=90)
            for address in ADDRESSES.values()
        )
        bird = Bird(RouterSettings(64701, FABRIC, (FABRIC,), peers), link.right, tmp_path / "bird")
        parts: list[Agent | Bird] = [bird, *agents.values()]
        for part in parts:
            part.start()
            stack.callback(part.stop)
        apply(server, _importing())
        bird.announce(*LEARNED, NOT_PERMITTED)
        model = Model(server)
        edits = Edits(random.Random(SEED), model)  # noqa: S311  a seed, no secret

        def logs() -> str:
            return "\n".join([operator.tail(), *(part.daemon.tail() for part in parts)])

        def check() -> None:
            model.check(by_http(server))
            for name, address in ADDRESSES.items():
                assert set(bird.routes(IPV4, address)) == model.advertised(name)
            _check_kernel(places[list(ADDRESSES).index(INSTALLING)])

        eventually(check, within=90, context=logs)
        assert model.advertised("w1") == {"10.180.4.0/23", "10.61.3.0/24"}
        done = []
        for _ in range(EDITS):
            done.append(edits.one())
            eventually(check, context=lambda: "\n".join((*done, logs())))
            model.check(by_kubectl(server))


def _importing() -> dict[str, Any]:
    """Return the source, with prefixes that nodes accept from the fabric."""
    permitted = {"mode": "filtered", "prefixes": [{"prefix": "172.20.0.0/16", "le": 24}]}
    neighbor = {"address": FABRIC, "asn": 64701, "toReceive": {"allowed": permitted}}
    return source("spine", {"asn": 64710, "neighbors": [neighbor]})


def _check_kernel(node: Namespace) -> None:
    """OVN-Kubernetes reads routes of BGP's protocol in the main table, and of these the gateways."""
    rows = json.loads(node.run("ip", "-j", "route", "show", "table", "254", "proto", "186"))
    found = sorted((row["dst"], row["gateway"], row["dev"]) for row in rows)
    assert found == [(prefix, FABRIC, DEVICE) for prefix in LEARNED]


def test_the_operator_steps_back_from_another_writer(
    server: KubeApiServer, operator: Daemon
) -> None:
    # As before the random edits.
    made: dict[Kind[Any], tuple[str, ...]] = {
        ROUTE_ADVERTISEMENTS: ("ra0", "ra1"),
        FRR_CONFIGURATION: ("leaf",),
        CLUSTER_NETWORK: ("red",),
        VTEP: ("fabric",),
        EGRESS_IP: ("egress0", "egress1", "egress2"),
    }
    delete(server, *(f"{kind.plural}.{kind.group}/{n}" for kind in made for n in made[kind]))
    nodes = starmap(addressed_node, SUBNETS.items())
    apply(server, namespace("red-ns"), source(), RED, *nodes, ROW)
    eventually(
        lambda: _check_status(by_http(server), "Accepted", "Accepted"), context=operator.tail
    )
    _steps_back(server, operator)


def _steps_back(server: KubeApiServer, operator: Daemon) -> None:
    """Write as OVN-Kubernetes does; the operator does not write any more."""
    status = {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "RouteAdvertisements",
        "metadata": {"name": "north"},
        "status": {"status": "Accepted"},
    }
    path = f"{ROWS}/north/status?fieldManager={OVNK}&force=true"
    answer = server.request("PATCH", path, status, kind="apply-patch+yaml")
    assert answer.ok, answer.body
    eventually(
        lambda: _says(operator, "writes RouteAdvertisements as well"),
        context=operator.tail,
    )
    before = generated_in(by_kubectl(server))
    assert before
    delete(server, f"{ROUTE_ADVERTISEMENTS.plural}/north")
    time.sleep(QUIET)
    assert generated_in(by_kubectl(server)) == before


def _says(operator: Daemon, text: str) -> None:
    assert text in operator.log.read_text()
