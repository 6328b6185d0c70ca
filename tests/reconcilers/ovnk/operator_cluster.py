"""A cluster of the operator: objects in tables, and what is written goes back into them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import (
    ClusterContext,
    ClusterIntent,
    CompatMetric,
    Durations,
    NodeContext,
    OperatorMetricsContext,
)
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.model import Condition, ObjectAnnotations
from reconcilers.ovnk.compat_metrics import of_operator
from reconcilers.ovnk.dialect import OvnkDialect
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.sliced_work import Slices, at_once
from resources.kind import Kind
from resources.ovnk.networkattachmentdefinition import ROUTE_ADVERTISEMENTS as KEY
from resources.tables import Tables
from statedb import Database

Json = dict[str, Any]
FRR: Final = "frr-k8s-system"


def node(name: str, subnets: Mapping[str, Any] | str, address: str = "10.88.0.11/24") -> Json:
    """Return a Node with the annotations of OVN-Kubernetes."""
    text = subnets if isinstance(subnets, str) else json.dumps(subnets)
    annotations = {
        "k8s.ovn.org/node-subnets": text,
        "k8s.ovn.org/node-primary-ifaddr": json.dumps({"ipv4": address}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": annotations,
        },
    }


def source(name: str = "spine", *routers: Json, labels: Mapping[str, str] | None = None) -> Json:
    """Return an FRRConfiguration; by default with a router of the default VRF and one neighbour."""
    default = {"asn": 64710, "neighbors": [{"address": "10.88.0.1", "asn": 64701}]}
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {
            "name": name,
            "namespace": FRR,
            "labels": {"fabric": "spine"} if labels is None else dict(labels),
        },
        "spec": {"bgp": {"routers": list(routers) or [default]}},
    }


def attachment(name: str, subnets: str, **changes: Any) -> Json:  # noqa: ANN401
    """Return the NetworkAttachmentDefinition of a ClusterUserDefinedNetwork; None omits a field."""
    network = f"cluster_udn_{name}"
    config = {
        "cniVersion": "1.1.0", "name": network, "type": "ovn-k8s-cni-overlay",
        "topology": "layer3", "role": "primary", "subnets": subnets, **changes.pop("config", {}),
    }  # fmt: skip
    owner = {"apiVersion": "k8s.ovn.org/v1", "kind": "ClusterUserDefinedNetwork", "name": name}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {
            "name": name,
            "namespace": f"{name}-ns",
            "labels": changes.pop("labels", {"export": "yes"}),
            "annotations": {
                "k8s.ovn.org/network-name": network,
                "k8s.ovn.org/network-id": changes.pop("number", "5"),
            },
            "ownerReferences": [{**owner, "uid": f"uid-{name}", "controller": True}],
        },
        "spec": {"config": changes.pop("text", json.dumps(config))},
    }


DEFAULT_NETWORK: Final = {"networkSelectionType": "DefaultNetwork"}
CLUSTER_NETWORKS: Final = {
    "networkSelectionType": "ClusterUserDefinedNetworks",
    "clusterUserDefinedNetworkSelector": {"networkSelector": {"matchLabels": {"export": "yes"}}},
}


def advertisements(name: str = "north", **spec: Any) -> Json:  # noqa: ANN401
    """Return RouteAdvertisements; of the default network unless ``spec`` has others."""
    default = {
        "advertisements": ["PodNetwork"],
        "nodeSelector": {},
        "frrConfigurationSelector": {"matchLabels": {"fabric": "spine"}},
        "networkSelectors": [DEFAULT_NETWORK],
    }
    found = {key: value for key, value in {**default, **spec}.items() if value is not None}
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "RouteAdvertisements",
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1},
        "spec": found,
    }


def _of_node(name: str) -> Slices[NodeContext]:
    """Return the context of a node, with the options of the dialect that is fed."""
    return at_once(NodeContext(name, merging_options=Frrk8sClusterOptions()))


class Cluster:
    """Objects, and an operator that reads and writes them."""

    def __init__(self, *objects: Json, **options: Any) -> None:  # noqa: ANN401
        self.options = OvnkOptions(mode="generate", **options)
        self._db = Database()
        self._tables = Tables(self._db, kinds_of([OvnkDialect, Frrk8sDialect]))
        self.put(*objects)
        self.restart()

    def restart(self) -> None:
        """Begin with another process of the operator."""
        self._dialect = OvnkDialect(self._tables, self.options)
        self._state: Any = None

    def put(self, *objects: Json) -> None:
        """Create or replace objects."""
        for one in objects:
            kind = self._kind(one["kind"])
            table = self._tables.of(kind)
            with self._db.write(table) as txn:
                table.upsert(txn, kind.decode(one))

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        table = self._tables.of(self._kind(kind))
        with self._db.write(table) as txn:
            table.delete(txn, (namespace, name))

    def _kind(self, name: str) -> Kind[Any]:
        found = self._tables.kinds.named(name)
        assert found is not None, name
        return found

    def operate(self) -> ClusterIntent:
        """Run the operator once."""
        intent = self._dialect.controller.operate(
            self._db.snapshot(), ClusterContext(state=self._state, of_node=_of_node)
        )
        self._state = intent.state
        return intent

    def operator_metrics(self) -> list[CompatMetric]:
        """Return the metrics of the operator by OVN-Kubernetes' names, without conditions."""
        found = of_operator(self._dialect, OperatorMetricsContext({}, Durations(), self._state))
        return [metric for metric in found if metric is not None]

    def fresh_start(self) -> ClusterIntent:
        """Return what another process would want at its start."""
        other = OvnkDialect(self._tables, self.options)
        return other.controller.operate(self._db.snapshot(), ClusterContext(of_node=_of_node))

    def write(self) -> ClusterIntent:
        """Run the operator, and write what it wants."""
        intent = self.operate()
        self.put(*(one.content for one in intent.generated if one.object in intent.outdated))
        for one in intent.deletions:
            self.remove(one.object.kind, one.object.name, one.object.namespace)
        return intent

    def settle(self) -> None:
        """Run the operator, and write what it wants with annotations, until it wants nothing."""
        for _ in range(5):
            intent = self.write()
            for one in intent.annotations:
                self._annotate(one)
            if not (intent.outdated or intent.deletions or intent.annotations):
                return
        raise AssertionError("the operator does not end")

    def _annotate(self, wanted: ObjectAnnotations) -> None:
        ref = wanted.object
        table = self._tables.of(self._kind(ref.kind))
        row = table.get(self._db.snapshot(), (ref.namespace, ref.name))
        assert row is not None, ref
        annotations = {**row.metadata.annotations, **wanted.annotations}
        with self._db.write(table) as txn:
            table.upsert(txn, replace(row, metadata=replace(row.metadata, annotations=annotations)))

    def annotations(self) -> dict[tuple[str, str], str | None]:
        """Return the annotation with RouteAdvertisements of each stored attachment."""
        table = self._tables.of(self._kind("NetworkAttachmentDefinition"))
        rows = table.all(self._db.snapshot())
        return {row.key: row.metadata.annotations.get(KEY) for row in rows}

    def generated(self) -> dict[str, Json]:
        """Return the specs of stored generated FRRConfigurations, by annotation."""
        table = self._tables.of(self._kind("FRRConfiguration"))
        return {
            row.metadata.annotations[KEY]: msgspec.to_builtins(row.spec)
            for row in table.all(self._db.snapshot())
            if KEY in row.metadata.annotations
        }

    def condition(self, name: str = "north") -> Condition:
        """Return the condition Accepted of RouteAdvertisements."""
        found = {
            one.object.name: one for one in self.operate().conditions if one.type == "Accepted"
        }
        return found[name]
