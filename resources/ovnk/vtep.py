"""VTEP: the addresses of the nodes between which EVPN networks are tunnelled."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from resources.addresses import prefix_errors
from resources.crds.schema_markers import doc
from resources.errors import FieldError
from resources.meta import Resource, Struct
from resources.metav1 import Conditions, ConditionsStatus


class VTEPSpec(Struct, frozen=True):
    """The specification."""

    cidrs: Annotated[
        tuple[Annotated[str, Meta(max_length=43)], ...],
        Meta(min_length=1, max_length=20),
        doc("The prefixes of the addresses of the nodes; they do not overlap."),
    ]
    mode: Annotated[
        Literal["Managed", "Unmanaged"],
        doc("Unmanaged: the addresses of nodes are configured by others. Managed: not supported."),
    ] = "Managed"


class Vtep(Resource, frozen=True):
    """One VTEP."""

    spec: Annotated[VTEPSpec, doc("The addresses.")]


class VTEPStatus(ConditionsStatus, frozen=True):
    """The status."""

    conditions: Conditions = ()


def vtep_errors(row: Vtep) -> Iterator[FieldError]:
    """Yield the rules that an OVN-Kubernetes VTEP breaks, and a schema cannot express."""
    networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
    for i, text in enumerate(row.spec.cidrs):
        path = f"spec.cidrs[{i}]"
        errors = list(prefix_errors(text, path))
        yield from errors
        if errors:
            continue
        network = ipaddress.ip_network(text)
        for other in networks:
            if network.version == other.version and network.overlaps(other):
                yield FieldError(path, f"{text} overlaps with {other}")
        networks.append(network)
