"""The prefixes that a Service contributes to a route set, and why it contributes none.

The rules are Cilium's: loadBalancerClass, selector (with its two reserved keys), traffic policy of
each address type, endpoints on this node, aggregation. What does not depend on the route set is
computed once per Service (`service_addresses`) and matched with every entry of every set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.cilium.route_sets import AdvertisementEntry, RouteSet
from reconcilers.dialect import Contributed, ServiceAddress
from reconcilers.intent.join import united
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin
from reconcilers.prefixes import aggregate, covered, host_route
from resources.core import EndpointSlice, Service
from resources.core.service import EXTERNAL_IPS, HEADLESS, INGRESS
from speaker.nlri import Family

ADVERTISEMENT_TYPE = "Service"
NAME_KEY = "io.kubernetes.service.name"
NAMESPACE_KEY = "io.kubernetes.service.namespace"
LOAD_BALANCER_CLASS = "io.cilium/bgp-control-plane"
PROXIED_LABELS = frozenset(
    {"io.cilium/gateway-api", "io.cilium.gateway/owning-gateway", "cilium.io/ingress"}
)
"""Labels of the Services that Cilium creates for Gateways and Ingresses."""
L7_ANNOTATION = "service.cilium.io/lb-l7"
"""Cilium has the Envoy of each node serve a Service where its value is ``enabled``."""
PROXIED_ENDPOINT = "192.192.192.192"
"""Cilium's placeholder in their EndpointSlices: traffic goes to the Envoy of each node."""


class ServiceOptions(msgspec.Struct, frozen=True):
    """The options of the dialect that concern Services."""

    no_service_endpoints_routable: bool = True
    """True to advertise a Service with traffic policy Cluster and without any endpoint."""
    legacy_origin_attribute: bool = False
    """True if LoadBalancer addresses have ORIGIN INCOMPLETE."""


class AddressGroup(NamedTuple):
    """The addresses of one type, and the reason if they are not advertised."""

    type: str
    nlri: dict[Family, tuple[bytes, ...]]
    local: bool
    """Traffic policy Local: the addresses are not aggregated."""
    withheld: tuple[str, str] | None
    """Reason and message."""
    incomplete: bool = False
    """True if their ORIGIN is INCOMPLETE."""
    field: str | None = None
    """The field in which the Service names them; None for those that Kubernetes assigns."""


class ServiceAddresses(NamedTuple):
    """A Service's labels and addresses, the same for all route sets."""

    ref: ObjectRef
    labels: Mapping[str, str]
    groups: tuple[AddressGroup, ...]
    reachable: bool
    """True if it has an active endpoint on some node."""


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
    """True if the proxy of every node serves the Service, which then needs no endpoint."""
    if service.metadata.annotations.get(L7_ANNOTATION) == "enabled":
        return True
    return not PROXIED_LABELS.isdisjoint(service.metadata.labels) or any(
        PROXIED_ENDPOINT in endpoint.addresses for piece in slices for endpoint in piece.endpoints
    )


def _reachable(slices: Iterable[EndpointSlice]) -> bool:
    return any(endpoint.active for piece in slices for endpoint in piece.endpoints)


def _group(
    type_: str, texts: Iterable[str], policy: str, withheld: tuple[str, str] | None
) -> AddressGroup:
    nlri: dict[Family, tuple[bytes, ...]] = {}
    for text in texts:
        family, route = host_route(text)
        nlri[family] = (*nlri.get(family, ()), route)
    if not nlri and withheld is None:
        withheld = ("NoAddress", f"it has no address of type {type_} (yet)")
    return AddressGroup(type_, nlri, policy == "Local", withheld)


def service_addresses(
    service: Service, slices: Iterable[EndpointSlice], node: str, options: ServiceOptions
) -> ServiceAddresses:
    """Return a Service's addresses by type; ``slices`` are its EndpointSlices."""
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
    return ServiceAddresses(
        ObjectRef("Service", meta.namespace, meta.name),
        {**meta.labels, **reserved},
        (
            balanced._replace(incomplete=options.legacy_origin_attribute, field=INGRESS),
            _group("ClusterIP", service.cluster_addresses, spec.internal_traffic_policy, inside),
            _group("ExternalIP", spec.external_ips, spec.external_traffic_policy, outside)._replace(
                field=EXTERNAL_IPS
            ),
        ),
        _reachable(pieces),
    )


def _selects(entry: AdvertisementEntry, service: ServiceAddresses) -> bool:
    return (
        entry.type == ADVERTISEMENT_TYPE
        and entry.selector is not None
        and entry.selector.matches(service.labels)
    )


def _advertises(entry: AdvertisementEntry, service: ServiceAddresses, group: AddressGroup) -> bool:
    return (
        group.type in entry.addresses
        and group.withheld is None
        and (service.reachable or not entry.needs_endpoint)
    )


def _prefixes(
    entry: AdvertisementEntry, group: AddressGroup, family: Family
) -> Iterator[tuple[bytes, ServiceAddress | None]]:
    """Yield the advertised prefix of each address, with the address if the Service names it."""
    for nlri in group.nlri.get(family, ()):
        if entry.within is not None and not covered(nlri, entry.within):
            continue
        address = None if group.field is None else ServiceAddress(group.field, nlri)
        if entry.aggregation_length is not None and not group.local:
            yield aggregate(nlri, entry.aggregation_length), address
        else:
            yield nlri, address


def contributions(service: ServiceAddresses, route_set: RouteSet) -> Iterator[Contributed]:
    """Yield the prefixes of one Service in one set: each address once for an object that selects it."""
    selected: dict[
        tuple[Family, bytes, ObjectRef, str, ServiceAddress | None], list[Attributes]
    ] = {}
    for family, entries in route_set.entries.items():
        for entry in entries:
            if not _selects(entry, service):
                continue
            for group in service.groups:
                if not _advertises(entry, service, group):
                    continue
                attributes = entry.attributes
                if group.incomplete:
                    attributes = replace(attributes, incomplete=True)
                for nlri, address in _prefixes(entry, group, family):
                    key = (family, nlri, entry.rule, group.type, address)
                    selected.setdefault(key, []).append(attributes)
    for (family, nlri, rule, type_, address), attributes_of_entries in selected.items():
        origin = Origin(service.ref, rule, type_)
        contribution = Contribution(origin, united(attributes_of_entries))
        yield Contributed(route_set.name, family, nlri, contribution, address)
