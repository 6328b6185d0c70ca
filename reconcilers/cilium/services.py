"""What a Service contributes to a route set, and why it contributes nothing.

The rules are Cilium's: the class, the selector (with its two reserved keys), the traffic policy of
each address type, the endpoints on this node, aggregation. What does not depend on the set is worked
out once per Service (`facts`), then asked by every entry of every set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.cilium.route_sets import Entry, RouteSet
from reconcilers.intent.join import united
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin
from reconcilers.prefixes import aggregate, covered, host_route
from resources.core import EndpointSlice, Service
from resources.core.service import HEADLESS
from speaker.nlri import Family

ENTRY = "Service"
NAME_KEY = "io.kubernetes.service.name"
NAMESPACE_KEY = "io.kubernetes.service.namespace"
LOAD_BALANCER_CLASS = "io.cilium/bgp-control-plane"
PROXIED_LABELS = frozenset(
    {"io.cilium/gateway-api", "io.cilium.gateway/owning-gateway", "cilium.io/ingress"}
)
"""Cilium gives them to the Services that it makes for Gateways and Ingresses."""
PROXIED_ENDPOINT = "192.192.192.192"
"""Stands in the EndpointSlices of such Services for the Envoy of each node."""


class ServiceOptions(msgspec.Struct, frozen=True):
    """The options of the dialect that concern Services."""

    no_service_endpoints_routable: bool = True
    """Whether a Service with policy Cluster and without any endpoint is advertised."""
    legacy_origin_attribute: bool = False
    """Whether LoadBalancer addresses have the ORIGIN INCOMPLETE."""


class Addresses(NamedTuple):
    """The addresses of one type, and why they are not to be advertised, if so."""

    type: str
    nlri: dict[Family, tuple[bytes, ...]]
    local: bool
    """Policy Local: never aggregated."""
    withheld: tuple[str, str] | None
    """Reason and message."""
    incomplete: bool = False
    """Whether their ORIGIN is INCOMPLETE."""


class Facts(NamedTuple):
    """A Service, as far as all route sets see it alike."""

    ref: ObjectRef
    labels: Mapping[str, str]
    addresses: tuple[Addresses, ...]
    reachable: bool
    """Whether it has an active endpoint anywhere."""


NO_ENDPOINT = ("NoEndpoint", "it has no ready endpoint anywhere")


def _endpoint_reason(
    policy: str, slices: Iterable[EndpointSlice], node: str, options: ServiceOptions
) -> tuple[str, str] | None:
    if policy == "Local":
        if any(
            endpoint.active and endpoint.node_name == node
            for piece in slices
            for endpoint in piece.endpoints
        ):
            return None
        return ("NoLocalEndpoint", "its traffic policy is Local and no ready endpoint is here")
    return None if options.no_service_endpoints_routable or _reachable(slices) else NO_ENDPOINT


def _proxied(service: Service, slices: Iterable[EndpointSlice]) -> bool:
    """Tell whether every node's proxy takes the traffic of a Service: it needs no endpoint."""
    return not PROXIED_LABELS.isdisjoint(service.metadata.labels) or any(
        PROXIED_ENDPOINT in endpoint.addresses for piece in slices for endpoint in piece.endpoints
    )


def _reachable(slices: Iterable[EndpointSlice]) -> bool:
    return any(endpoint.active for piece in slices for endpoint in piece.endpoints)


def _group(kind: str, texts: Iterable[str], policy: str, why: tuple[str, str] | None) -> Addresses:
    nlri: dict[Family, tuple[bytes, ...]] = {}
    for text in texts:
        family, route = host_route(text)
        nlri[family] = (*nlri.get(family, ()), route)
    if not nlri and why is None:
        why = ("NoAddress", f"it has no address of type {kind} (yet)")
    return Addresses(kind, nlri, policy == "Local", why)


def facts(
    service: Service, slices: Iterable[EndpointSlice], node: str, options: ServiceOptions
) -> Facts:
    """Return what is the same for every route set; ``slices`` are the Service's."""
    meta, spec = service.metadata, service.spec
    pieces = list(slices)
    outside = _endpoint_reason(spec.external_traffic_policy, pieces, node, options)
    inside = (
        outside
        if spec.internal_traffic_policy == spec.external_traffic_policy
        else _endpoint_reason(spec.internal_traffic_policy, pieces, node, options)
    )
    proxied = spec.type == "LoadBalancer" and _proxied(service, pieces)
    balancer = None if proxied else outside
    if spec.type != "LoadBalancer":
        balancer = ("NotLoadBalancer", f"it is of type {spec.type}")
    elif spec.load_balancer_class not in (None, LOAD_BALANCER_CLASS):
        balancer = ("LoadBalancerClass", f"its class is {spec.load_balancer_class}")
    if spec.cluster_ip == HEADLESS:
        inside = ("Headless", "it is headless: it has no cluster IP")
    if spec.type == "ExternalName":
        balancer = inside = outside = ("ExternalName", "it is a name, and nothing forwards to it")
    ingress = [item.ip for item in service.status.load_balancer.ingress if item.ip]
    reserved = {NAME_KEY: meta.name, NAMESPACE_KEY: meta.namespace}
    balanced = _group("LoadBalancerIP", ingress, spec.external_traffic_policy, balancer)
    return Facts(
        ObjectRef("Service", meta.namespace, meta.name),
        {**meta.labels, **reserved},
        (
            balanced._replace(incomplete=options.legacy_origin_attribute),
            _group("ClusterIP", service.cluster_addresses, spec.internal_traffic_policy, inside),
            _group("ExternalIP", spec.external_ips, spec.external_traffic_policy, outside),
        ),
        _reachable(pieces),
    )


def _selects(entry: Entry, found: Facts) -> bool:
    return (
        entry.type == ENTRY and entry.selector is not None and entry.selector.matches(found.labels)
    )


def _why_not(entry: Entry, found: Facts, group: Addresses) -> tuple[str, str] | None:
    if group.withheld is None and entry.needs_endpoint and not found.reachable:
        return NO_ENDPOINT
    return group.withheld


def contributions(
    found: Facts, route_set: RouteSet
) -> Iterator[tuple[Family, bytes, Contribution]]:
    """Tell the prefixes of one Service in one set, each once for every rule that selects it."""
    wishes: dict[tuple[Family, bytes, ObjectRef], list[Attributes]] = {}
    for family, entries in route_set.entries.items():
        for entry in entries:
            if not _selects(entry, found):
                continue
            for group in found.addresses:
                if group.type not in entry.addresses or _why_not(entry, found, group) is not None:
                    continue
                attributes = entry.attributes
                if group.incomplete:
                    attributes = replace(attributes, incomplete=True)
                for nlri in group.nlri.get(family, ()):
                    if entry.within is not None and not covered(nlri, entry.within):
                        continue
                    if entry.aggregation_length is not None and not group.local:
                        nlri = aggregate(nlri, entry.aggregation_length)
                    wishes.setdefault((family, nlri, entry.rule), []).append(attributes)
    for (family, nlri, rule), wished in wishes.items():
        origin = Origin(found.ref, rule)
        yield family, nlri, Contribution(origin, united(wished))
