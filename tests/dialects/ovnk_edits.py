"""Objects of OVN-Kubernetes on a real API server: places, definitions, and random edits.

People apply and read objects with kubectl, and so do these tests: networks, attachments,
RouteAdvertisements and FRRConfigurations are applied and deleted by it, one batch for each call.
Results are read by HTTP until they are right, which may take many readings, and then once by kubectl.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from resources.crds.generate import custom_resource_definition
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.ovnk.kinds import (
    CLUSTER_NETWORK,
    EGRESS_IP,
    NETWORK_ATTACHMENT,
    ROUTE_ADVERTISEMENTS,
    UPLINK_STATE,
    USER_NETWORK,
    VTEP,
)
from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    DEFAULT_NETWORK,
    FRR,
    Cluster,
    advertisements,
    attachment,
    node,
    source,
)
from tests.support import plain_yaml
from tests.support.kubernetes.server import KubeApiServer

KEY: Final = "k8s.ovn.org/route-advertisements"
ROWS: Final = "/apis/k8s.ovn.org/v1/routeadvertisements"
CONFIGURATIONS: Final = f"/apis/frrk8s.metallb.io/v1beta1/namespaces/{FRR}/frrconfigurations"
NAMESPACES: Final = "/api/v1/namespaces"
ATTACHMENTS: Final = "network-attachment-definitions"
KINDS: Final = (ROUTE_ADVERTISEMENTS, CLUSTER_NETWORK, USER_NETWORK, VTEP, FRR_CONFIGURATION)
PLACES: Final = {
    kind.name: kind.path(kind.versions[0])
    for kind in (*KINDS, EGRESS_IP, UPLINK_STATE)
    if not kind.namespaced
}
REPORTED: Final = (ROUTE_ADVERTISEMENTS, CLUSTER_NETWORK, VTEP)
"""The kinds with conditions."""
READ: Final = (FRR_CONFIGURATION, NETWORK_ATTACHMENT, *REPORTED)
"""The kinds with results of the operator."""
FABRIC: Final = "10.88.0.1"
ADDRESSES: Final = {"w1": "10.88.0.11", "w2": "10.88.0.12"}


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


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


Json = dict[str, Any]
_AS_PERSON: Final = ("--server-side", "--force-conflicts", "--field-manager=person")


def apply(server: KubeApiServer, *objects: Json) -> None:
    """Apply objects as a person does; a field that was applied before and is absent now goes."""
    content = {"apiVersion": "v1", "kind": "List", "items": objects}
    server.kubectl("apply", *_AS_PERSON, "-f", "-", text=json.dumps(content))


def delete(server: KubeApiServer, *names: str, namespace: str = FRR) -> None:
    """Delete objects, each as KIND/NAME, if they are there."""
    server.kubectl("delete", "--ignore-not-found", "--wait=false", "--namespace", namespace, *names)


def by_kubectl(server: KubeApiServer) -> list[Json]:
    """Return the objects with results of the operator, as kubectl reads them."""
    kinds = ",".join(f"{kind.plural}.{kind.group}" for kind in READ)
    text = server.kubectl("get", kinds, "--all-namespaces", "-o", "json")
    found: list[Json] = json.loads(text)["items"]
    return found


def by_http(server: KubeApiServer) -> list[Json]:
    """Return the same, for checks that are repeated."""
    objects: list[Json] = []
    for kind in READ:
        path = f"/apis/{kind.group}/{kind.versions[0]}/{kind.plural}"
        objects += server.request("GET", path).body["items"]
    return objects


def generated_in(objects: Iterable[Json]) -> dict[str, Json]:
    """Return the generated objects by annotation."""
    named = (
        (one["metadata"].get("annotations", {}).get(KEY), one)
        for one in objects
        if one["kind"] == FRR_CONFIGURATION.name
    )
    return {name: one for name, one in named if name is not None}


def advertisers_in(objects: Iterable[Json]) -> dict[tuple[str, str], str | None]:
    """Return the annotations of attachments, by namespace and name."""
    return {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["metadata"]
        .get("annotations", {})
        .get(KEY)
        for one in objects
        if one["kind"] == NETWORK_ATTACHMENT.name
    }


SUBNETS: Final = {
    "w1": {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]},
    "w2": {"default": ["10.180.6.0/23"], "cluster_udn_red": ["10.61.4.0/24"]},
}
ROW: Final = of_server(advertisements(networkSelectors=[DEFAULT_NETWORK, CLUSTER_NETWORKS]))
RED: Final = of_server(attachment("red", "10.61.0.0/16/24"))


def addressed_node(name: str, subnets: Any) -> dict[str, Any]:  # noqa: ANN401
    return node(name, subnets, f"{ADDRESSES[name]}/24")


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


class Model:
    """The same cluster in memory, with an operator that is started again for each edit."""

    def __init__(self, server: KubeApiServer) -> None:
        self._server = server
        paths = [f"{CONFIGURATIONS}/spine", f"{attachments('red-ns')}/red", f"{ROWS}/north"]
        paths += [f"/api/v1/nodes/{name}" for name in SUBNETS]
        paths += [f"{NAMESPACES}/{name}" for name in (FRR, "ovn-kubernetes", "red-ns")]
        objects = [server.request("GET", path).body for path in paths]
        defined = custom_resource_definition(FRR_CONFIGURATION)
        self._cluster = Cluster(*objects, defined, evpn=True)
        self._cluster.settle()

    def put(self, value: Json) -> None:
        arguments = ("apply", *_AS_PERSON, "-o", "json", "-f", "-")
        # With what the definitions add.
        stored = json.loads(self._server.kubectl(*arguments, text=json.dumps(value)))
        self._edited(lambda: self._cluster.put(stored))

    def remove(self, kind: Kind[Any], name: str, namespace: str = "") -> None:
        delete(self._server, f"{kind.plural}.{kind.group}/{name}", namespace=namespace or FRR)
        self._edited(lambda: self._cluster.remove(kind.name, name, namespace))

    def _edited(self, edit: Callable[[], None]) -> None:
        edit()
        self._cluster.restart()
        self._cluster.settle()

    def check(self, objects: list[Json]) -> None:
        """Compare generated objects, annotations of attachments and conditions in the API server."""
        found = {
            name: msgspec.to_builtins(FRR_CONFIGURATION.decode(one).spec)
            for name, one in generated_in(objects).items()
        }
        assert found == self._cluster.generated()
        assert advertisers_in(objects) == self._cluster.annotations()
        assert self._reported(objects) == self._wanted_reports()

    def _reported(self, objects: Iterable[Json]) -> dict[tuple[str, str], Any]:
        """Return status and conditions of the objects of OVN-Kubernetes, without times."""
        reported = {}
        kinds = {kind.name for kind in REPORTED}
        for row in objects:
            status = row.get("status", {})
            conditions = {
                one["type"]: {key: one[key] for key in one if key != "lastTransitionTime"}
                for one in status.get("conditions", ())
            }
            if row["kind"] in kinds and conditions:
                found = (status.get("status", ""), conditions)
                reported[row["kind"], row["metadata"]["name"]] = found
        return reported

    def _wanted_reports(self) -> dict[tuple[str, str], Any]:
        """Return the same as an operator that starts now would write it."""
        wanted: dict[tuple[str, str], Any] = {}
        for one in self._cluster.fresh_start().conditions:
            condition = {
                "type": one.type,
                "status": str(one.status),
                "reason": one.reason,
                "message": one.message,
                "observedGeneration": one.observed_generation,
            }
            _, before = wanted.get((one.object.kind, one.object.name), ("", {}))
            found = (one.summary, {**before, one.type: condition})
            wanted[one.object.kind, one.object.name] = found
        return wanted

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

    def _put(self, value: Json) -> str:
        self._model.put(value)
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
        value = addressed_node(name, subnets)
        if self._chance.random() < 0.9:
            vteps = {"fabric": {"ips": [f"100.72.0.{number + 1}"]}}
            value["metadata"]["annotations"]["k8s.ovn.org/vteps"] = json.dumps(vteps)
        return self._put(value)

    def _broken_annotation(self) -> object:
        self._broken = self._node
        return self._put(addressed_node(self._broken, "{"))

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
        return self._put(of_server(row))

    def _no_advertisements(self) -> object:
        name = f"ra{self._chance.randrange(2)}"
        self._model.remove(ROUTE_ADVERTISEMENTS, name)
        return name

    def _attachment(self) -> object:
        evpn = {"vtep": "fabric", "ipVRF": {"vni": 5200, "routeTarget": "64710:5200"}}
        config = self._chance.choice(
            ({}, {}, {"transport": "no-overlay"}, {"transport": "evpn", "evpn": evpn})
        )
        red = of_server(attachment("red", "10.61.0.0/16/24", config=config))
        red["metadata"]["labels"]["export"] = self._chance.choice(("yes", "yes", "no"))
        return self._put(red)

    def _source(self) -> object:
        if self._is_heads():
            self._model.remove(FRR_CONFIGURATION, "leaf", FRR)
            return "no leaf"
        neighbors = [{"address": FABRIC, "asn": 64701}]
        routers = [{"asn": 64710, "neighbors": neighbors}]
        if self._is_heads():
            of_vrf = [{"address": "10.99.0.1", "asn": 64801}]
            routers.append({"asn": 64710, "vrf": "red", "neighbors": of_vrf})
        leaf = source("leaf", *routers)
        leaf["spec"]["nodeSelector"] = {"matchLabels": {"kubernetes.io/hostname": self._node}}
        return self._put(leaf)

    def _network(self) -> object:
        if self._is_heads():
            self._model.remove(CLUSTER_NETWORK, "red")
            return "no network"
        red = next(plain_yaml.load_all(NETWORKS))
        red["metadata"]["labels"]["export"] = self._chance.choice(("yes", "no"))
        return self._put(red)

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
        return self._put({**value, "spec": spec, "status": {"items": items}})

    def _no_egress_ip(self) -> object:
        name = f"egress{self._chance.randrange(3)}"
        self._model.remove(EGRESS_IP, name)
        return name

    def _vtep(self) -> object:
        if self._chance.random() < 0.3:
            self._model.remove(VTEP, "fabric")
            return "no VTEP"
        _, vtep = plain_yaml.load_all(NETWORKS)
        vtep["spec"]["cidrs"] = [self._chance.choice(("100.72.0.0/24", "100.73.0.0/24"))]
        return self._put(vtep)

    def _namespace(self) -> object:
        labels = {"net": self._chance.choice(("red", "green"))}
        if self._is_heads():
            labels["k8s.ovn.org/primary-user-defined-network"] = ""
        return self._put(namespace("red-ns", **labels))

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
        return self._put({**value, "spec": spec, "status": status})
