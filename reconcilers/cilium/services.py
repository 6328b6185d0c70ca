"""The prefixes that a Service contributes to a route set, and why it contributes none.

The rules are Cilium's: loadBalancerClass, selector (with its two reserved keys), traffic policy of
each address type, endpoints on this node, aggregation. What does not depend on the route set is
computed once per Service (`service_addresses`) and matched with every entry of every set.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from reconcilers.cilium.exposure import CLUSTER_IP, not_served, type_not_served
from reconcilers.cilium.route_sets import AdvertisementEntry, RouteSet
from reconcilers.dialect import Contributed, ServiceAddress
from reconcilers.dialect.join import united
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin
from reconcilers.prefixes import aggregate, covered, host_route
from resources.core import EndpointSlice, Service
from resources.core.service import EXTERNAL_IPS, INGRESS, LOAD_BALANCER
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family

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


class ServiceOptions(NamedTuple):
    """The options of the dialect that concern Services."""

    no_service_endpoints_routable: bool = True
    """True to advertise a Service with traffic policy Cluster and without any endpoint."""
    legacy_origin_attribute: bool = False
    """True if LoadBalancer addresses have ORIGIN INCOMPLETE."""
    proxy_name: str = ""
    """The label `reconcilers.cilium.exposure.PROXY_NAME` of the Services that Cilium serves."""


class AddressGroup(NamedTuple):
    """The addresses of one type and family, and the reason if they are not advertised."""

    type: str
    nlri: dict[Family, tuple[bytes, ...]]
    """Of one family; empty if the Service has no address of the type."""
    local: bool
    """Traffic policy Local: the addresses are not aggregated."""
    withheld: tuple[str, str] | None
    """Reason and message."""
    incomplete: bool = False
    """True if their ORIGIN is INCOMPLETE."""
    field: str | None = None
    """The field in which the Service names them; None for addresses that Kubernetes assigns."""


class ServiceAddresses(NamedTuple):
    """A Service's labels and addresses, the same for all route sets."""

    ref: ObjectRef
    labels: Mapping[str, str]
    groups: Sequence[AddressGroup]
    reachable: frozenset[Family]
    """The families of its addresses in which it has an active endpoint on some node."""


NO_ENDPOINT = ("NoEndpoint", "it has no ready endpoint anywhere")
WITHOUT_ENDPOINT: Final = frozenset({"NoEndpoint", "NoLocalEndpoint"})
"""The reasons of addresses that are advertised as soon as there is an endpoint."""
_ADDRESS_TYPES: Final = {IPV4_UNICAST: "IPv4", IPV6_UNICAST: "IPv6"}
"""Of EndpointSlices, by family."""
_Reason: TypeAlias = tuple[str, str] | None


class _Endpoints(NamedTuple):
    """The EndpointSlices of one Service, as a node evaluates them."""

    slices: Sequence[EndpointSlice]
    node: str
    routable: bool
    """True to advertise Services with traffic policy Cluster without any endpoint."""

    def reason(self, policy: str, family: Family) -> _Reason:
        """Return why addresses of a family are not advertised; None if they are.

        Only endpoints of the family count: a connection to an IPv6 address goes to one of them.
        """
        if policy == "Local":
            if self.active(family, self.node):
                return None
            text = f"no ready {self._of_family(family, self.node)}endpoint is here"
            return ("NoLocalEndpoint", f"its traffic policy is Local and {text}")
        if self.routable or self.active(family):
            return None
        of_family = self._of_family(family)
        return ("NoEndpoint", f"it has no ready {of_family}endpoint anywhere")

    def active(self, family: Family, node: str | None = None) -> bool:
        """True if an endpoint of the family is active, on a node or on any.

        Kubernetes writes a slice for each family of a Service, an empty one where there is no endpoint.
        Where the family has none, as in manifests, all endpoints are used.
        """
        if not self.slices:
            return False
        address_type = _ADDRESS_TYPES[family]
        of_family = [piece for piece in self.slices if piece.address_type == address_type]
        return any(
            endpoint.active and node in (None, endpoint.node_name)
            for piece in of_family or self.slices
            for endpoint in piece.endpoints
        )

    def _of_family(self, family: Family, node: str | None = None) -> str:
        """Return the family as a word, where there is an endpoint of the other family."""
        other = IPV6_UNICAST if family == IPV4_UNICAST else IPV4_UNICAST
        if not self.active(other, node):
            return ""
        return f"{_ADDRESS_TYPES[family]} "


def _proxied(service: Service, slices: Iterable[EndpointSlice]) -> bool:
    """True if the proxy of every node serves the Service, which then needs no endpoint."""
    if service.metadata.annotations.get(L7_ANNOTATION) == "enabled":
        return True
    if not PROXIED_LABELS.isdisjoint(service.metadata.labels):
        return True
    for piece in slices:
        for endpoint in piece.endpoints:
            if PROXIED_ENDPOINT in endpoint.addresses:
                return True
    return False


def _groups(
    type_: str,
    texts: Sequence[str],
    policy: str,
    withheld: _Reason,
    endpoints: _Endpoints | None,
    field: str | None = None,
    *,
    incomplete: bool = False,
) -> list[AddressGroup]:
    """Return the addresses of a type by family.

    ``withheld`` is the reason why none is advertised, else ``endpoints`` decide: None if the Service
    needs none.
    """
    local = policy == "Local"
    if not texts:
        missing = ("NoAddress", f"it has no address of type {type_} (yet)")
        return [AddressGroup(type_, {}, local, withheld or missing, incomplete, field)]
    nlri: dict[Family, list[bytes]] = {}
    for text in texts:
        family, route = host_route(text)
        nlri.setdefault(family, []).append(route)
    groups = []
    for family, routes in nlri.items():
        reason = withheld
        if reason is None and endpoints is not None:
            reason = endpoints.reason(policy, family)
        groups.append(
            AddressGroup(type_, {family: tuple(routes)}, local, reason, incomplete, field)
        )
    return groups


def service_addresses(
    service: Service,
    slices: Iterable[EndpointSlice],
    node: str,
    labels: Mapping[str, str] | None,
    options: ServiceOptions,
) -> ServiceAddresses:
    """Return a Service's addresses by type, as Cilium has them; ``slices`` are EndpointSlices.

    ``labels`` are the node's, for a Service that some nodes serve (`exposure.not_served`).
    """
    meta, spec = service.metadata, service.spec
    pieces = list(slices)
    endpoints = _Endpoints(pieces, node, options.no_service_endpoints_routable)
    outside = not_served(service, labels, options.proxy_name)
    balancer = outside or type_not_served(service, LOAD_BALANCER)
    inside = outside or type_not_served(service, CLUSTER_IP)
    if spec.type != LOAD_BALANCER:
        balancer = ("NotLoadBalancer", f"it is of type {spec.type}")
    elif spec.load_balancer_class not in (None, LOAD_BALANCER_CLASS):
        balancer = ("LoadBalancerClass", f"its class is {spec.load_balancer_class}")
    if spec.type == "ExternalName":
        balancer = inside = outside = ("ExternalName", "it is a name, and nothing forwards to it")
    proxied = spec.type == LOAD_BALANCER and _proxied(service, pieces)
    external, internal = spec.external_traffic_policy, spec.internal_traffic_policy
    groups = _groups(
        "LoadBalancerIP",
        service.load_balancer_vips,
        external,
        balancer,
        None if proxied else endpoints,
        INGRESS,
        incomplete=options.legacy_origin_attribute,
    )
    groups += _groups("ClusterIP", service.cluster_addresses, internal, inside, endpoints)
    groups += _groups(
        "ExternalIP", service.external_addresses, external, outside, endpoints, EXTERNAL_IPS
    )
    families = {family for group in groups for family in group.nlri} if pieces else ()
    return ServiceAddresses(
        ObjectRef("Service", meta.namespace, meta.name),
        {**meta.labels, NAME_KEY: meta.name, NAMESPACE_KEY: meta.namespace},
        groups,
        frozenset([family for family in families if endpoints.active(family)]),
    )


def selected_addresses(
    service: ServiceAddresses, route_set: RouteSet, ignored: Container[str] = ()
) -> Iterator[tuple[Family, bytes]]:
    """Yield the host routes of a Service that a Cilium route set advertises, not aggregated.

    Addresses that are withheld for one of the reasons ``ignored`` are as if they were not.
    """
    for family, entries in route_set.entries.items():
        for entry in entries:
            for group in service.groups if _selects(entry, service) else ():
                if group.withheld is not None and group.withheld[0] in ignored:
                    group = group._replace(withheld=None)
                if _advertises(entry, service, group, family):
                    for nlri in group.nlri[family]:
                        if entry.within is None or covered(nlri, entry.within):
                            yield family, nlri


def _selects(entry: AdvertisementEntry, service: ServiceAddresses) -> bool:
    return (
        entry.type == ADVERTISEMENT_TYPE
        and entry.selector is not None
        and entry.selector.matches(service.labels)
    )


def _advertises(
    entry: AdvertisementEntry, service: ServiceAddresses, group: AddressGroup, family: Family
) -> bool:
    return (
        family in group.nlri
        and group.type in entry.addresses
        and group.withheld is None
        and (not entry.needs_endpoint or family in service.reachable)
    )


def _prefixes(
    entry: AdvertisementEntry, group: AddressGroup, family: Family
) -> Iterator[tuple[bytes, ServiceAddress | None]]:
    """Yield the advertised prefix of each address, with the address if the Service names it."""
    for nlri in group.nlri[family]:
        if entry.within is not None and not covered(nlri, entry.within):
            continue
        address = None if group.field is None else ServiceAddress(group.field, nlri)
        if entry.aggregation_length is not None and not group.local:
            yield aggregate(nlri, entry.aggregation_length), address
        else:
            yield nlri, address


def contributions(service: ServiceAddresses, route_set: RouteSet) -> Iterator[Contributed]:
    """Yield a Service's prefixes in one Cilium route set: each once for an object that selects it."""
    selected: dict[
        tuple[Family, bytes, ObjectRef, str, ServiceAddress | None], list[Attributes]
    ] = {}
    for family, entries in route_set.entries.items():
        for entry in entries:
            if not _selects(entry, service):
                continue
            for group in service.groups:
                if not _advertises(entry, service, group, family):
                    continue
                attributes = entry.attributes
                if group.incomplete:
                    attributes = replace(attributes, incomplete=True)
                for nlri, address in _prefixes(entry, group, family):
                    key = (family, nlri, entry.rule, group.type, address)
                    selected.setdefault(key, []).append(attributes)
    for (family, nlri, rule, type_, address), attributes_of_entries in selected.items():
        origin = Origin(service.ref, rule, type_)
        attributes = attributes_of_entries[0]
        if len(attributes_of_entries) > 1:
            attributes = united(attributes_of_entries)
        contribution = Contribution(origin, attributes)
        yield Contributed(route_set.name, family, nlri, contribution, address)
