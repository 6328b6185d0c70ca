"""RouteAdvertisements on a real API server: definitions, the operator with ``generate``, two agents.

One operator serves the tests in their order. ``OVNK_EDITS`` is the number of random edits, and
``OVNK_SEED`` their seed.
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
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from resources.crds.generate import custom_resource_definition
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.ovnk.kinds import (
    CLUSTER_NETWORK,
    EGRESS_IP,
    NETWORK_ATTACHMENT,
    ROUTE_ADVERTISEMENTS,
    UPLINK_STATE,
    USER_NETWORK,
    VTEP,
)
from tests.reconcilers.ovnk.cluster import (
    CLUSTER_NETWORKS,
    DEFAULT_NETWORK,
    FRR,
    Cluster,
    advertisements,
    attachment,
    node,
    source,
)
from tests.resources.ovnk import test_kinds as rules
from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import CRDS, define, put, undefine
from tests.support.kubernetes.server import ApiServer
from tests.support.netns import DEVICE, Namespace, linked_namespaces, nodes_at
from tests.support.relay import BackgroundRelay
from tests.support.routers import PeerSettings, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.bird import Bird
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

KEY: Final = "k8s.ovn.org/route-advertisements"
ROWS: Final = "/apis/k8s.ovn.org/v1/routeadvertisements"
CONFIGURATIONS: Final = f"/apis/frrk8s.metallb.io/v1beta1/namespaces/{FRR}/frrconfigurations"
NAMESPACES: Final = "/api/v1/namespaces"
ATTACHMENTS: Final = "network-attachment-definitions"
OVNK: Final = "clustermanager-routeadvertisements-controller"
KINDS: Final = (ROUTE_ADVERTISEMENTS, CLUSTER_NETWORK, USER_NETWORK, VTEP, FRR_CONFIGURATION)
PLACES: Final = {
    kind.name: kind.path(kind.versions[0])
    for kind in (*KINDS, EGRESS_IP, UPLINK_STATE)
    if not kind.namespaced
}
QUIET: Final = 5.0
"""Seconds in which a write would have come."""


def definition(group: str, version: str, kind: str, plural: str, scope: str) -> dict[str, Any]:
    """Return the definition of a kind of OVN-Kubernetes that is only read, without rules."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    of_version = {"name": version, "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [{**of_version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


DEFINITIONS: Final = [
    definition(kind.group, kind.versions[0], kind.name, kind.plural, scope)
    for kind, scope in (
        (NETWORK_ATTACHMENT, "Namespaced"),
        (EGRESS_IP, "Cluster"),
        (UPLINK_STATE, "Cluster"),
    )
]


def attachments(namespace: str) -> str:
    return f"/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/{ATTACHMENTS}"


def of_server(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what the API server sets."""
    found = copy.deepcopy(value)
    for key in ("uid", "generation"):
        found["metadata"].pop(key, None)
    return found


FABRIC: Final = "10.88.0.1"
ADDRESSES: Final = {"w1": "10.88.0.11", "w2": "10.88.0.12"}
INSTALLING: Final = "w1"
"""The node whose agent installs routes in its kernel."""
LEARNED, NOT_PERMITTED = ("172.20.0.0/16", "172.20.7.0/24"), "172.21.0.0/16"
EDITS: Final = int(os.environ.get("OVNK_EDITS", "6"))
SEED: Final = int(os.environ.get("OVNK_SEED", "1"))


@pytest.fixture(scope="module")
def server(apiserver: ApiServer) -> Iterator[ApiServer]:
    names = define(apiserver, KINDS)
    for value in DEFINITIONS:
        put(apiserver, CRDS, value)
        names.append(value["metadata"]["name"])
    for namespace in (FRR, "ovn-kubernetes", "red-ns"):
        put(apiserver, NAMESPACES, _namespace(namespace))
    for path in (attachments("red-ns"), PLACES["EgressIP"], PLACES["UplinkState"]):
        eventually(functools.partial(_serves, apiserver, path), within=60)
    yield apiserver
    undefine(apiserver, names)
    for name in ("w1", "w2"):
        apiserver.request("DELETE", f"/api/v1/nodes/{name}")


def _namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _serves(server: ApiServer, path: str) -> None:
    assert server.request("GET", path).ok


def _found(server: ApiServer) -> dict[str, Any]:
    """Return the generated objects by annotation."""
    items = server.request("GET", CONFIGURATIONS).body["items"]
    named = ((one["metadata"].get("annotations", {}).get(KEY), one) for one in items)
    return {name: one for name, one in named if name is not None}


def _check_prefixes(server: ApiServer, expected: dict[str, list[str]]) -> None:
    found = _found(server)
    assert {
        name: one["spec"]["bgp"]["routers"][0]["prefixes"] for name, one in found.items()
    } == expected


def _check_status(server: ApiServer, name: str, status: str, reason: str) -> None:
    found = server.request("GET", f"{ROWS}/{name}").body.get("status", {})
    assert found.get("status", "").startswith(status), found
    (condition,) = found["conditions"]
    assert (condition["type"], condition["reason"]) == ("Accepted", reason)


def _check_annotation(server: ApiServer, path: str, expected: str) -> None:
    metadata = server.request("GET", path).body["metadata"]
    assert metadata.get("annotations", {}).get(KEY) == expected


def test_the_definitions_take_what_the_rules_take(server: ApiServer) -> None:
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


def _check_changes(server: ApiServer) -> None:
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


SUBNETS: Final = {
    "w1": {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]},
    "w2": {"default": ["10.180.6.0/23"], "cluster_udn_red": ["10.61.4.0/24"]},
}
ROW: Final = of_server(advertisements(networkSelectors=[DEFAULT_NETWORK, CLUSTER_NETWORKS]))
RED: Final = of_server(attachment("red", "10.61.0.0/16/24"))


def _node(name: str, subnets: Any) -> dict[str, Any]:  # noqa: ANN401
    return node(name, subnets, f"{ADDRESSES[name]}/24")


@pytest.fixture(scope="module")
def operator(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """An operator with ``generate``, and what it generates of."""
    # OVN-Kubernetes has written the annotation before.
    red = copy.deepcopy(RED)
    red["metadata"]["annotations"][KEY] = '["former"]'
    put(server, attachments("red-ns"), red)
    for name, subnets in SUBNETS.items():
        put(server, "/api/v1/nodes", _node(name, subnets))
    put(server, CONFIGURATIONS, source())
    put(server, ROWS, ROW)
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


def test_the_operator_generates_and_follows_changes(server: ApiServer, operator: Daemon) -> None:
    of_w1, of_w2 = ["10.180.4.0/23", "10.61.3.0/24"], ["10.180.6.0/23", "10.61.4.0/24"]
    both = {"north/spine/w1": of_w1, "north/spine/w2": of_w2}
    eventually(lambda: _check_prefixes(server, both), within=90, context=operator.tail)
    eventually(lambda: _check_status(server, "north", "Accepted", "Accepted"), within=60)
    for path in (f"{attachments('red-ns')}/red", f"{attachments('ovn-kubernetes')}/default"):
        eventually(
            lambda: _check_annotation(server, path, '["north"]'),  # noqa: B023
            within=60,
            context=operator.tail,
        )
    before = {name: one["metadata"] for name, one in _found(server).items()}
    others = {**SUBNETS["w2"], "default": ["10.180.8.0/23"]}
    put(server, "/api/v1/nodes", _node("w2", others))
    changed = {**both, "north/spine/w2": ["10.180.8.0/23", "10.61.4.0/24"]}
    eventually(lambda: _check_prefixes(server, changed), within=60, context=operator.tail)
    after = {name: one["metadata"] for name, one in _found(server).items()}
    w1, w2 = "north/spine/w1", "north/spine/w2"
    assert after[w1]["resourceVersion"] == before[w1]["resourceVersion"]
    assert after[w2]["name"] == before[w2]["name"]
    put(server, "/api/v1/nodes", _node("w2", "{"))
    error = "Not Accepted: configuration error: node w2"
    eventually(lambda: _check_status(server, "north", error, "ConfigurationError"), within=60)
    _check_prefixes(server, changed)
    put(server, "/api/v1/nodes", _node("w2", SUBNETS["w2"]))
    eventually(lambda: _check_status(server, "north", "Accepted", "Accepted"), within=60)
    eventually(lambda: _check_prefixes(server, both), within=60, context=operator.tail)


NETWORKS: Final = f"""
apiVersion: k8s.ovn.org/v1
kind: {CLUSTER_NETWORK.name}
metadata: {{name: red, labels: {{export: "yes"}}}}
spec:
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: red-ns}}}}
  network:
    topology: Layer3
    layer3: {{role: Primary, subnets: [{{cidr: 10.61.0.0/16, hostSubnet: 24}}]}}
    transport: NoOverlay
    noOverlay: {{outboundSNAT: Enabled, routing: Unmanaged}}
---
apiVersion: k8s.ovn.org/v1
kind: {VTEP.name}
metadata: {{name: fabric}}
spec: {{cidrs: [100.72.0.0/24], mode: Unmanaged}}
"""


def test_networks_and_vteps_have_conditions(server: ApiServer, operator: Daemon) -> None:
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
            within=60,
            context=operator.tail,
        )
    server.kubectl("delete", "-f", "-", text=NETWORKS)


class Model:
    """The same cluster in memory, with an operator that is started again for each edit."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        paths = [f"{CONFIGURATIONS}/spine", f"{attachments('red-ns')}/red", f"{ROWS}/north"]
        paths += [f"/api/v1/nodes/{name}" for name in SUBNETS]
        paths += [f"{NAMESPACES}/{name}" for name in (FRR, "ovn-kubernetes", "red-ns")]
        objects = [server.request("GET", path).body for path in paths]
        defined = custom_resource_definition(FRR_CONFIGURATION)
        self._cluster = Cluster(*objects, defined, evpn=True)
        self._cluster.write()

    def put(self, path: str, value: dict[str, Any]) -> None:
        # With what the definitions add.
        stored = put(self._server, path, value)
        self._edited(lambda: self._cluster.put(stored))

    def remove(self, path: str, kind: str, name: str, namespace: str = "") -> None:
        self._server.request("DELETE", f"{path}/{name}")
        self._edited(lambda: self._cluster.remove(kind, name, namespace))

    def _edited(self, edit: Callable[[], None]) -> None:
        edit()
        self._cluster.restart()
        self._cluster.write()

    def check(self) -> None:
        """Compare what is generated in the API server."""
        found = {
            name: msgspec.to_builtins(FRR_CONFIGURATION.decode(one).spec)
            for name, one in _found(self._server).items()
        }
        assert found == self._cluster.generated()

    def advertised(self, of: str) -> set[str]:
        """Return the prefixes that a node has to advertise to the fabric."""
        return {
            prefix
            for name, spec in self._cluster.generated().items()
            if name.endswith(f"/{of}")
            for router in spec["bgp"]["routers"]
            # The nodes of this test have no VRFs.
            if not router.get("vrf")
            for neighbor in router.get("neighbors", ())
            for prefix in neighbor["toAdvertise"]["allowed"].get("prefixes", ())
        }


class Edits:
    """Random changes of what is generated of; each returns what it has changed."""

    def __init__(self, chance: random.Random, model: Model) -> None:
        self._chance, self._model = chance, model
        self._broken = ""
        """A node whose annotation is wrong: the next edit repairs it, as it keeps all others back."""
        self._all: tuple[Callable[[], object], ...] = (
            self._subnets,
            self._broken_annotation,
            self._advertisements,
            self._advertisements,
            self._no_advertisements,
            self._attachment,
            self._source,
            self._network,
            self._egress_ip,
            self._no_egress_ip,
            self._vtep,
            self._namespace,
            self._uplink,
        )

    def one(self) -> str:
        """Make one; returns its name and its object."""
        edit = self._subnets if self._broken else self._chance.choice(self._all)
        return f"{edit.__name__}: {edit()}"

    @property
    def _node(self) -> str:
        return self._chance.choice(sorted(ADDRESSES))

    def _put(self, path: str, value: dict[str, Any]) -> str:
        self._model.put(path, value)
        return json.dumps(value)

    def _is_heads(self) -> bool:
        return self._chance.random() < 0.5

    def _subnets(self) -> object:
        name, number = self._broken or self._node, self._chance.randrange(100)
        self._broken = ""
        subnets = {
            "default": [f"10.180.{2 * number}.0/23"],
            "cluster_udn_red": [f"10.61.{number}.0/24"],
        }
        value = _node(name, subnets)
        if self._chance.random() < 0.9:
            vteps = {"fabric": {"ips": [f"100.72.0.{number + 1}"]}}
            value["metadata"]["annotations"]["k8s.ovn.org/vteps"] = json.dumps(vteps)
        return self._put("/api/v1/nodes", value)

    def _broken_annotation(self) -> object:
        self._broken = self._node
        return self._put("/api/v1/nodes", _node(self._broken, "{"))

    def _advertisements(self) -> object:
        choice = self._chance.choice
        both = [DEFAULT_NETWORK, CLUSTER_NETWORKS]
        of = choice((["PodNetwork"], ["EgressIP"], ["PodNetwork", "EgressIP"]))
        row = advertisements(
            f"ra{self._chance.randrange(2)}",
            networkSelectors=choice(([DEFAULT_NETWORK], [CLUSTER_NETWORKS], both)),
            advertisements=of,
            targetVRF=choice((None, None, "default", "auto", "auto", "red")),
        )
        return self._put(ROWS, of_server(row))

    def _no_advertisements(self) -> object:
        name = f"ra{self._chance.randrange(2)}"
        self._model.remove(ROWS, "RouteAdvertisements", name)
        return name

    def _attachment(self) -> object:
        evpn = {"vtep": "fabric", "ipVRF": {"vni": 5200, "routeTarget": "64710:5200"}}
        config = self._chance.choice(
            ({}, {}, {"transport": "no-overlay"}, {"transport": "evpn", "evpn": evpn})
        )
        red = of_server(attachment("red", "10.61.0.0/16/24", config=config))
        red["metadata"]["labels"]["export"] = self._chance.choice(("yes", "yes", "no"))
        return self._put(attachments("red-ns"), red)

    def _source(self) -> object:
        if self._is_heads():
            self._model.remove(CONFIGURATIONS, "FRRConfiguration", "leaf", FRR)
            return "no leaf"
        neighbors = [{"address": FABRIC, "asn": 64701}]
        routers = [{"asn": 64710, "neighbors": neighbors}]
        if self._is_heads():
            of_vrf = [{"address": "10.99.0.1", "asn": 64801}]
            routers.append({"asn": 64710, "vrf": "red", "neighbors": of_vrf})
        leaf = source("leaf", *routers)
        leaf["spec"]["nodeSelector"] = {"matchLabels": {"kubernetes.io/hostname": self._node}}
        return self._put(CONFIGURATIONS, leaf)

    def _network(self) -> object:
        place, kind = PLACES[CLUSTER_NETWORK.name], CLUSTER_NETWORK.name
        if self._is_heads():
            self._model.remove(place, kind, "red")
            return "no network"
        red = next(yaml.safe_load_all(NETWORKS))
        red["metadata"]["labels"]["export"] = self._chance.choice(("yes", "no"))
        return self._put(place, red)

    def _egress_ip(self) -> object:
        number = self._chance.randrange(3)
        items = [
            {"node": name, "egressIP": f"10.88.1.{10 * number + n}"}
            for n, name in enumerate(ADDRESSES)
            if self._is_heads()
        ]
        labels = self._chance.choice(({}, {"net": "red"}, {"net": "none"}))
        spec = {
            "egressIPs": [f"10.88.1.{10 * number + n}" for n in range(2)],
            "namespaceSelector": {"matchLabels": labels},
        }
        metadata = {"name": f"egress{number}"}
        value = {"apiVersion": "k8s.ovn.org/v1", "kind": EGRESS_IP.name, "metadata": metadata}
        return self._put(
            PLACES[EGRESS_IP.name], {**value, "spec": spec, "status": {"items": items}}
        )

    def _no_egress_ip(self) -> object:
        name = f"egress{self._chance.randrange(3)}"
        self._model.remove(PLACES[EGRESS_IP.name], EGRESS_IP.name, name)
        return name

    def _vtep(self) -> object:
        if self._chance.random() < 0.3:
            self._model.remove(PLACES[VTEP.name], VTEP.name, "fabric")
            return "no VTEP"
        _, vtep = yaml.safe_load_all(NETWORKS)
        vtep["spec"]["cidrs"] = [self._chance.choice(("100.72.0.0/24", "100.73.0.0/24"))]
        return self._put(PLACES[VTEP.name], vtep)

    def _namespace(self) -> object:
        labels = {"net": self._chance.choice(("red", "green"))}
        if self._is_heads():
            labels["k8s.ovn.org/primary-user-defined-network"] = ""
        return self._put(NAMESPACES, _namespace("red-ns", **labels))

    def _uplink(self) -> object:
        name = self._node
        spec = {"uplinkName": "leaf", "nodeName": name}
        status = {
            "ipAddresses": [f"172.31.0.{self._chance.randrange(1, 250)}/24"],
            "conditions": [{"type": "HostDataReady", "status": "True"}],
        }
        metadata = {"name": f"leaf-{name}"}
        version = UPLINK_STATE.api_versions[0]
        value = {"apiVersion": version, "kind": UPLINK_STATE.name, "metadata": metadata}
        return self._put(PLACES[UPLINK_STATE.name], {**value, "spec": spec, "status": status})


@pytest.mark.interop
@pytest.mark.netns
@pytest.mark.timeout(300 + 20 * EDITS)
def test_the_fabric_has_what_an_operator_that_starts_then_would_have_advertised(
    server: ApiServer, operator: Daemon, no_namespaces: str | None, tmp_path: Path
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
        put(server, CONFIGURATIONS, _importing())
        bird.announce(*LEARNED, NOT_PERMITTED)
        model = Model(server)
        edits = Edits(random.Random(SEED), model)  # noqa: S311  a seed, no secret

        def logs() -> str:
            return "\n".join([operator.tail(), *(part.daemon.tail() for part in parts)])

        def check() -> None:
            model.check()
            for name, address in ADDRESSES.items():
                assert set(bird.routes(IPV4, address)) == model.advertised(name)
            _check_kernel(places[list(ADDRESSES).index(INSTALLING)])

        eventually(check, within=90, context=logs)
        assert model.advertised("w1") == {"10.180.4.0/23", "10.61.3.0/24"}
        done = []
        for _ in range(EDITS):
            done.append(edits.one())
            eventually(check, context=lambda: "\n".join((*done, logs())))


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


def test_the_operator_steps_back_from_another_writer(server: ApiServer, operator: Daemon) -> None:
    # As before the random edits.
    egress_ips = (f"{PLACES[EGRESS_IP.name]}/egress{number}" for number in range(3))
    networks = (f"{PLACES[CLUSTER_NETWORK.name]}/red", f"{PLACES[VTEP.name]}/fabric")
    for path in (
        *(f"{ROWS}/ra0", f"{ROWS}/ra1", f"{CONFIGURATIONS}/leaf"),
        *(*networks, *egress_ips),
    ):
        server.request("DELETE", path)
    put(server, NAMESPACES, _namespace("red-ns"))
    put(server, CONFIGURATIONS, source())
    put(server, attachments("red-ns"), RED)
    for name, subnets in SUBNETS.items():
        put(server, "/api/v1/nodes", _node(name, subnets))
    put(server, ROWS, ROW)
    eventually(lambda: _check_status(server, "north", "", "Accepted"), context=operator.tail)
    _steps_back(server, operator)


def _steps_back(server: ApiServer, operator: Daemon) -> None:
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
        within=60,
        context=operator.tail,
    )
    before = json.dumps(_found(server), sort_keys=True)
    assert server.request("DELETE", f"{ROWS}/north").ok
    time.sleep(QUIET)
    assert json.dumps(_found(server), sort_keys=True) == before


def _says(operator: Daemon, text: str) -> None:
    assert text in operator.log.read_text()
