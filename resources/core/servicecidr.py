"""ServiceCIDR (networking.k8s.io/v1, and v1beta1 before Kubernetes 1.33): ranges of cluster IPs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from resources.addresses import prefix_errors
from resources.errors import FieldError
from resources.meta import Resource, Struct


class ServiceCIDRSpec(Struct, frozen=True):
    """v1.ServiceCIDRSpec."""

    cidrs: tuple[str, ...] = ()


class ServiceCIDR(Resource, frozen=True):
    """The ranges of one object; also of an object that is being deleted, until it is gone."""

    spec: ServiceCIDRSpec = msgspec.field(default_factory=ServiceCIDRSpec)


def service_cidr_errors(row: ServiceCIDR) -> Iterator[FieldError]:
    """Yield the rules that a ServiceCIDR breaks, and a schema cannot express."""
    for i, cidr in enumerate(row.spec.cidrs):
        yield from prefix_errors(cidr, f"spec.cidrs[{i}]")
