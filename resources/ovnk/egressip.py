"""EgressIP, as far as it is read: the namespaces, and the addresses that nodes have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from resources.crds.schema_markers import doc
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, strict_selector_errors
from resources.meta import Resource, Struct


class EgressIPItem(Struct, frozen=True):
    """An address, and the node that has it."""

    node: str = ""
    egress_ip: str = msgspec.field(name="egressIP", default="")


class EgressIPStatus(Struct, frozen=True):
    """The addresses that are assigned."""

    items: tuple[EgressIPItem, ...] = ()


class EgressIPSpec(Struct, frozen=True):
    """The specification, as far as it is read."""

    namespace_selector: Annotated[
        LabelSelector, doc("The namespaces whose Pods use the addresses.")
    ]


class EgressIP(Resource, frozen=True):
    """One EgressIP."""

    spec: EgressIPSpec
    status: EgressIPStatus = msgspec.field(default_factory=EgressIPStatus)


def egress_ip_errors(row: EgressIP) -> Iterator[FieldError]:
    """Yield the rules that an OVN-Kubernetes EgressIP breaks, beyond its schema."""
    yield from strict_selector_errors(row.spec.namespace_selector, "spec.namespaceSelector")
