"""Service (v1): its addresses and its traffic policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec.structs import force_setattr as share

from resources.addresses import address_errors, without_leading_zeros
from resources.errors import FieldError
from resources.meta import Resource, Struct

TrafficPolicy = Literal["Cluster", "Local"]
HEADLESS = "None"
LOAD_BALANCER: Final = "LoadBalancer"
VIP: Final = "VIP"
INGRESS: Final = "status.loadBalancer.ingress"
EXTERNAL_IPS: Final = "spec.externalIPs"
"""The fields in which a Service names addresses; ClusterIPs are assigned to it."""


class ServiceSpec(Struct, frozen=True):
    """v1.ServiceSpec."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] = "ClusterIP"
    cluster_ip: str = ""
    cluster_ips: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = ()
    external_traffic_policy: TrafficPolicy = "Cluster"
    internal_traffic_policy: TrafficPolicy = "Cluster"
    load_balancer_class: str | None = None

    def __post_init__(self) -> None:
        """The first of the cluster IPs is the one of the older field."""
        if self.cluster_ips and self.cluster_ips[0] == self.cluster_ip:
            share(self, "cluster_ip", self.cluster_ips[0])


class LoadBalancerIngress(Struct, frozen=True):
    """v1.LoadBalancerIngress; one with a hostname only has no address."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    """``VIP``, as without one: packets to the address reach the nodes; ``Proxy``: they do not."""


class LoadBalancerStatus(Struct, frozen=True):
    """v1.LoadBalancerStatus."""

    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Struct, frozen=True):
    """v1.ServiceStatus."""

    load_balancer: LoadBalancerStatus = msgspec.field(default_factory=LoadBalancerStatus)


class Service(Resource, frozen=True):
    """One Service."""

    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)
    status: ServiceStatus = msgspec.field(default_factory=ServiceStatus)

    @property
    def cluster_addresses(self) -> tuple[str, ...]:
        """The Service's cluster IPs, none if headless; the older field for an empty list."""
        addresses = self.spec.cluster_ips or (self.spec.cluster_ip,)
        if len(addresses) == 1:  # of most Services
            (only,) = addresses
            return () if only in ("", HEADLESS) else (without_leading_zeros(only),)
        given = [address for address in addresses if address and address != HEADLESS]
        return tuple(map(without_leading_zeros, given))

    @property
    def external_addresses(self) -> tuple[str, ...]:
        """The Service's external IPs, without leading zeros, which API servers store."""
        given = self.spec.external_ips
        return tuple(map(without_leading_zeros, given)) if given else ()

    @property
    def load_balancer_addresses(self) -> tuple[str, ...]:
        """The Service's addresses at load balancers, without leading zeros."""
        given = self.status.load_balancer.ingress
        if not given:
            return ()
        return tuple(map(without_leading_zeros, [ingress.ip for ingress in given if ingress.ip]))

    @property
    def load_balancer_vips(self) -> tuple[str, ...]:
        """The Service's addresses at load balancers of which packets reach the nodes."""
        given = self.status.load_balancer.ingress
        vips = [item.ip for item in given if item.ip and item.ip_mode in (None, VIP)]
        return tuple(map(without_leading_zeros, vips))


def service_errors(service: Service) -> Iterator[FieldError]:
    """Yield the rules that a Service breaks, and a schema cannot express."""
    spec = service.spec
    if spec.cluster_ip and spec.cluster_ip != HEADLESS:
        yield from address_errors(spec.cluster_ip, "spec.clusterIP", zeros=True)
    for i, address in enumerate(spec.cluster_ips):
        if address != HEADLESS:
            yield from address_errors(address, f"spec.clusterIPs[{i}]", zeros=True)
    for i, address in enumerate(spec.external_ips):
        yield from address_errors(address, f"spec.externalIPs[{i}]", mapped=True, zeros=True)
    for i, ingress in enumerate(service.status.load_balancer.ingress):
        if ingress.ip:
            path = f"status.loadBalancer.ingress[{i}].ip"
            yield from address_errors(ingress.ip, path, mapped=True, zeros=True)
