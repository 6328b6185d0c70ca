"""Why Cilium's datapath does not forward to a Service on a node, or not to one type of its addresses.

A label or an annotation of the Service decides. A node must not advertise what it does not forward
to: the rules for advertisements (`services`) begin where these end. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from resources.core import Service
from resources.core.service import HEADLESS, LOAD_BALANCER
from resources.label_selectors import SelectorTextError, parse_selector

PROXY_NAME: Final = "service.kubernetes.io/service-proxy-name"
"""The label of Services that another proxy than the node's usual one serves."""
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
NODE: Final = "service.cilium.io/node"
"""Annotation of a Service, and label of the nodes that serve it: the values are equal."""
NODE_SELECTOR: Final = "service.cilium.io/node-selector"
"""Annotation with the selector of the nodes that serve the Service; it has precedence over `NODE`."""
TYPE: Final = "service.cilium.io/type"
"""Annotation with the one type of address that is served, beside external IPs."""
CLUSTER_IP: Final = "ClusterIP"
_TYPES: Final = frozenset({CLUSTER_IP, "NodePort", LOAD_BALANCER})
"""Other values of the annotation `TYPE` have no effect."""
Reason: TypeAlias = tuple[str, str] | None
"""Reason and message; None of an address that is served."""


def of_some_nodes(service: Service) -> bool:
    """True if labels of a node decide whether it serves the Service."""
    annotations = service.metadata.annotations
    return NODE_SELECTOR in annotations or NODE in annotations


def not_served(service: Service, labels: Mapping[str, str] | None, proxy_name: str) -> Reason:
    """Return why a node with these labels serves no address of a Service; None if it serves it.

    Without labels some node is meant, which may have any. ``proxy_name`` is the value of the label
    `PROXY_NAME` of the Services that Cilium serves; empty for Services without the label.
    """
    meta = service.metadata
    if meta.labels.get(PROXY_NAME, "") != proxy_name:
        given = f"is {meta.labels[PROXY_NAME]}" if PROXY_NAME in meta.labels else "is absent"
        return ("NotExposed", f"another proxy serves it: its label {PROXY_NAME} {given}")
    if _is_headless(service):
        return ("Headless", "it is headless: nothing forwards to its addresses")
    if labels is None or not of_some_nodes(service):
        return None
    annotation, value = _restriction(service)
    if annotation == NODE and labels.get(NODE) == value:
        return None
    if annotation == NODE_SELECTOR:
        try:
            if parse_selector(value).matches(labels):
                return None
        except SelectorTextError:  # as in Cilium: the annotation has no effect
            return None
    return ("NotExposed", f"its annotation {annotation} ({value}) does not select the node")


def _is_headless(service: Service) -> bool:
    """True without a cluster IP; of type LoadBalancer, which has one, only with the label."""
    spec = service.spec
    without = spec.cluster_ip == HEADLESS and spec.type != LOAD_BALANCER
    return without or HEADLESS_LABEL in service.metadata.labels


def _restriction(service: Service) -> tuple[str, str]:
    annotations = service.metadata.annotations
    annotation = NODE_SELECTOR if NODE_SELECTOR in annotations else NODE
    return annotation, annotations[annotation]


def type_not_served(service: Service, type_: str) -> Reason:
    """Return why cluster IPs, or addresses at load balancers, are not served; None if they are."""
    only = service.metadata.annotations.get(TYPE)
    if only == type_ or only not in _TYPES:
        return None
    return ("NotExposed", f"its annotation {TYPE} is {only}")
