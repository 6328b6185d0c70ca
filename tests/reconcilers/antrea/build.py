"""A small cluster in tables with Antrea's dialect alone: objects in, rounds, the document out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconcilers.antrea.dialect import AntreaDialect
from reconcilers.antrea.options import AntreaOptions
from reconcilers.compile_manifests import kinds_of
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.explain import Explainer
from reconcilers.intent.render import document
from reconcilers.intent.summary import Summary
from reconcilers.intent_tables import IntentTables
from resources.tables import Tables
from statedb import Database

NODE = "edge-7"
OLD = "2026-03-01T08:00:00Z"
NEW = "2026-03-02T08:00:00Z"
PEER = {"address": "10.30.4.1", "asn": 64600}
PEER6 = {"address": "2001:db8:30::1", "asn": 64600}
ROUTER_ID = "node.antrea.io/bgp-router-id"


class Cluster:
    """Objects of one cluster as an agent on a node sees them."""

    def __init__(self, *objects: dict[str, Any], node: str = NODE, **options: Any) -> None:  # noqa: ANN401
        self.db = Database()
        self.node = node
        self.kinds = kinds_of([AntreaDialect])
        self.resources = Tables(self.db, self.kinds)
        self.intent = IntentTables(self.db)
        self.dialect = AntreaDialect(self.resources, AntreaOptions(**options))
        self.compiler = IntentCompiler(self.db, self.resources, self.intent, [self.dialect], node)
        for one in objects:
            self.put(one)

    def put(self, *objects: dict[str, Any]) -> None:
        """Write objects."""
        for one in objects:
            kind = self.kinds.named(one["kind"])
            assert kind is not None
            table = self.resources.of(kind)
            with self.db.write(table) as txn:
                table.upsert(txn, kind.decode(one))

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object, if it exists."""
        found = self.kinds.named(kind)
        assert found is not None
        table = self.resources.of(found)
        with self.db.write(table) as txn:
            if table.get(txn, (namespace, name)) is not None:
                table.delete(txn, (namespace, name))

    def run(self) -> Summary:
        """Compile what is due."""
        return self.compiler.run()

    def render(self) -> dict[str, Any]:
        """Return the document of `waggle render`, up to date."""
        self.run()
        return document(self.db.snapshot(), self.node, self.resources, self.intent)

    def fresh(self) -> dict[str, Any]:
        """Return what a compiler without history makes of the same objects."""
        options = {
            name: getattr(self.dialect.options, name) for name in AntreaOptions.__struct_fields__
        }
        other = Cluster(node=self.node, **options)
        for kind in self.kinds:
            mine, theirs = self.resources.of(kind), other.resources.of(kind)
            with other.db.write(theirs) as txn:
                for row in mine.all(self.db.snapshot()):
                    theirs.upsert(txn, row)
        return other.render()

    def explainer(self) -> Explainer:
        """Return what explains the intent."""
        self.run()
        return self.compiler.explainer()

    def instance(self) -> dict[str, Any]:
        """Return the one instance of the document."""
        (found,) = self.render()["instances"]
        return dict(found)

    def peers(self) -> dict[str, dict[str, Any]]:
        """Return the peers by name."""
        return {p["name"]: p for i in self.render()["instances"] for p in i["peers"]}

    def prefixes(self, peer: str = "10.30.4.1") -> list[str]:
        """Return the prefixes that are advertised to a peer."""
        return [route["prefix"] for route in self.peers()[peer]["advertise"]]

    def problems(self) -> list[tuple[str, str]]:
        """Return object and field of each problem."""
        return [(p["objects"][0], p["field"]) for p in self.render()["problems"]]

    def reasons(self) -> dict[str, str]:
        """Return the reason of each policy's condition."""
        return {c["name"]: c["reason"] for c in self.render()["conditions"]}


def node(
    name: str = NODE,
    *,
    cidrs: Iterable[str] = ("10.201.7.0/24",),
    addresses: Iterable[str] = ("10.30.4.17",),
    labels: dict[str, str] | None = None,
    router_id: str | None = "10.30.4.17",
) -> dict[str, Any]:
    """Make a Node."""
    annotations = {} if router_id is None else {ROUTER_ID: router_id}
    listed = [{"type": "InternalIP", "address": address} for address in addresses]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"pool": "edge"} if labels is None else labels,
            "annotations": annotations,
        },
        "spec": {"podCIDRs": list(cidrs)},
        "status": {"addresses": [*listed, {"type": "Hostname", "address": name}]},
    }


def dual(name: str = NODE, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a Node with both families."""
    both = {
        "cidrs": ("10.201.7.0/24", "2001:db8:c9:7::/64"),
        "addresses": ("10.30.4.17", "2001:db8:30::17"),
    }
    return node(name, **{**both, **fields})


def policy(
    name: str = "edge-export",
    *ip_types: str,
    created: str = OLD,
    selector: dict[str, Any] | None = None,
    peers: Iterable[dict[str, Any]] = (PEER,),
    pod: bool = False,
    egress: bool = False,
    **spec: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Make a BGPPolicy."""
    advertisements: dict[str, Any] = {"service": {"ipTypes": list(ip_types)}} if ip_types else {}
    advertisements |= {"pod": {}} if pod else {}
    advertisements |= {"egress": {}} if egress else {}
    return {
        "apiVersion": "crd.antrea.io/v1alpha1",
        "kind": "BGPPolicy",
        "metadata": {"name": name, "creationTimestamp": created, "uid": f"uid-{name}"},
        "spec": {
            "nodeSelector": {"matchLabels": {"pool": "edge"}} if selector is None else selector,
            "localASN": 64620,
            "advertisements": advertisements,
            "bgpPeers": list(peers),
            **spec,
        },
    }


def service(name: str = "shop", namespace: str = "retail", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a Service; ``ingress`` are addresses of its status."""
    ingress = [{"ip": address} for address in spec.pop("ingress", ())]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"port": 443}], **spec},
        "status": {"loadBalancer": {"ingress": ingress}},
    }


def endpoints(
    *nodes: str,
    service: str = "shop",
    namespace: str = "retail",
    name: str = "shop-1",
    conditions: dict[str, bool] | None = None,
) -> dict[str, Any]:
    """Make an EndpointSlice with an endpoint on each of these nodes."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.201.9.4"],
                "nodeName": one,
                "conditions": conditions or {"ready": True},
            }
            for one in nodes
        ],
    }


def egress(name: str, address: str = "", on: str = "") -> dict[str, Any]:
    """Make an Egress."""
    return {
        "apiVersion": "crd.antrea.io/v1beta1",
        "kind": "Egress",
        "metadata": {"name": name},
        "status": {"egressIP": address, "egressNode": on},
    }


def secret(data: dict[str, str], namespace: str = "kube-system") -> dict[str, Any]:
    """Make the Secret with these keys and values."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "antrea-bgp-passwords", "namespace": namespace},
        "stringData": data,
    }


def in_ten_spellings(count: int) -> list[str]:
    """Return as many IPv6 addresses, each in ten spellings."""
    heads = [f"2001:{group}:{'0' * i}0" for group in ("db8", "DB8") for i in range(4)]
    spellings = [*(f"{head}:%x::1" for head in heads), "2001:db8:0:%x::0:1", "2001:db8:0:%04x::1"]
    return [text % number for text in spellings for number in range(1, count + 1)]
