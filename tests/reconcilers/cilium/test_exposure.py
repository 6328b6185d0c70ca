"""Labels and annotations by which Cilium does not forward to a Service: it is not advertised either."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import explained_kinds
from reconcilers.intent.explain import parse_target
from tests.reconcilers.build import NODE, Cluster, node, service, usual
from tests.support import kinds

BALANCER, INSIDE, OUTSIDE = "172.16.0.1/32", "10.96.0.1/32", "198.51.100.1/32"
ALL = [INSIDE, BALANCER, OUTSIDE]
OF_NODE = "service.cilium.io/node"
OF_NODES = "service.cilium.io/node-selector"
TYPE = "service.cilium.io/type"
PROXY = "service.kubernetes.io/service-proxy-name"


def with_service(metadata: dict[str, Any], spec: dict[str, Any], **options: Any) -> Cluster:  # noqa: ANN401
    """Return a cluster with a Service that has an address of each type; all are selected."""
    cluster = usual(**options)
    types = {"addresses": ["LoadBalancerIP", "ClusterIP", "ExternalIP"]}
    entry = {"advertisementType": "Service", "service": types, "selector": {}}
    labels = {"name": "ad", "labels": {"advertise": "ad"}}
    cluster.put(kinds.ADVERTISEMENT, {"metadata": labels, "spec": {"advertisements": [entry]}})
    value = service("s", "172.16.0.1")
    value["metadata"] |= metadata
    value["spec"] |= {"clusterIP": "10.96.0.1", "externalIPs": ["198.51.100.1"], **spec}
    cluster.put(kinds.SERVICE, value)
    cluster.run()
    return cluster


def annotated(key: str, value: str) -> dict[str, Any]:
    return {"annotations": {key: value}}


@pytest.mark.parametrize(
    ("metadata", "spec", "advertised"),
    [
        ({}, {}, ALL),
        (annotated(TYPE, "LoadBalancer"), {}, [BALANCER, OUTSIDE]),
        (annotated(TYPE, "ClusterIP"), {}, [INSIDE, OUTSIDE]),
        (annotated(TYPE, "NodePort"), {}, [OUTSIDE]),
        (annotated(TYPE, "loadbalancer"), {}, ALL),
        ({"labels": {"service.kubernetes.io/headless": ""}}, {}, []),
        ({}, {"type": "ClusterIP", "clusterIP": "None"}, []),
        ({"labels": {PROXY: "multus"}}, {}, []),
        ({"labels": {PROXY: ""}}, {}, ALL),
    ],
)
def test_addresses_that_cilium_does_not_forward_to_are_not_advertised(
    metadata: dict[str, Any], spec: dict[str, Any], advertised: list[str]
) -> None:
    assert with_service(metadata, spec).prefixes() == advertised


@pytest.mark.parametrize(
    ("labels", "advertised"), [({PROXY: "cilium"}, ALL), ({PROXY: "other"}, []), ({}, [])]
)
def test_with_a_proxy_name_only_services_with_that_label_are_advertised(
    labels: dict[str, str], advertised: list[str]
) -> None:
    cluster = with_service({"labels": labels}, {}, service_proxy_name="cilium")
    assert cluster.prefixes() == advertised


@pytest.mark.parametrize(
    ("annotations", "selected"),
    [
        ({OF_NODE: "blue"}, True),
        ({OF_NODE: "red"}, False),
        ({OF_NODES: "rack in (r1, r2),!drained"}, True),
        ({OF_NODES: "rack=r2"}, False),
        ({OF_NODES: ""}, True),
        # The selector has precedence over the one label.
        ({OF_NODES: "rack=r1", OF_NODE: "red"}, True),
        ({OF_NODES: "rack!=r1", OF_NODE: "blue"}, False),
        # As in Cilium a text that is no selector has no effect.
        ({OF_NODES: "rack in r1"}, True),
    ],
)
def test_a_service_of_some_nodes_is_advertised_by_these(
    annotations: dict[str, str], selected: bool
) -> None:
    cluster = with_service({"annotations": annotations}, {})
    cluster.put(kinds.NODE, node(**{OF_NODE: "blue", "rack": "r1"}))
    cluster.run()
    assert cluster.prefixes() == (ALL if selected else [])


def test_labels_of_the_node_and_annotations_of_the_service_may_change() -> None:
    cluster = with_service(annotated(OF_NODE, "blue"), {})
    assert cluster.prefixes() == []
    cluster.put(kinds.NODE, node(**{OF_NODE: "blue"}))
    cluster.run()
    assert cluster.prefixes() == ALL
    # Labels of a CiliumNode are the node's.
    cluster.put(kinds.CILIUM_NODE, {"metadata": {"name": NODE}})
    cluster.run()
    assert cluster.prefixes() == []
    cluster.delete(kinds.CILIUM_NODE, NODE)
    cluster.put(kinds.NODE, node())
    cluster.run()
    assert cluster.prefixes() == []
    cluster.put(kinds.SERVICE, service("s", "172.16.0.1"))
    cluster.run()
    assert cluster.prefixes() == [BALANCER]


def test_an_address_at_a_load_balancer_of_mode_proxy_is_not_advertised() -> None:
    cluster = with_service({}, {})
    value = service("s", "172.16.0.1")
    value["status"]["loadBalancer"]["ingress"] = [
        {"ip": "172.16.0.1", "ipMode": "VIP"},
        {"ip": "172.16.0.2", "ipMode": "Proxy"},
        {"ip": "172.16.0.3", "ipMode": None},
    ]
    cluster.put(kinds.SERVICE, value)
    cluster.run()
    assert cluster.prefixes() == [BALANCER, "172.16.0.3/32"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (annotated(OF_NODE, "red"), f"its annotation {OF_NODE} (red) does not select the node"),
        (annotated(OF_NODES, "a"), f"its annotation {OF_NODES} (a) does not select the node"),
        (annotated(TYPE, "ClusterIP"), f"its annotation {TYPE} is ClusterIP"),
        ({"labels": {PROXY: "x"}}, f"another proxy serves it: its label {PROXY} is x"),
    ],
)
def test_the_label_or_annotation_is_the_explanation(metadata: dict[str, Any], message: str) -> None:
    cluster = with_service(metadata, {})
    target = parse_target("172.16.0.1", explained_kinds([CiliumDialect]))
    groups = cluster.compiler.explainer().explain(target, lambda *_: True)
    (found,) = (one for group in groups for one in group)
    assert (found.reason, found.message) == ("NotExposed", message)
