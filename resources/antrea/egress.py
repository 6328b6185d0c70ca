"""Egress, as far as it is read: the address of its status, and the node that has it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from resources.addresses import address_errors
from resources.errors import FieldError
from resources.meta import Resource, Struct


class EgressStatus(Struct, frozen=True):
    """The address in use, and the node that it is assigned to; both may be empty."""

    egress_ip: str = ""
    egress_node: str = ""


class Egress(Resource, frozen=True):
    """One Egress."""

    status: EgressStatus = msgspec.field(default_factory=EgressStatus)


def egress_errors(egress: Egress) -> Iterator[FieldError]:
    """Yield the rules that an Antrea Egress breaks, and a schema cannot express."""
    yield from address_errors(egress.status.egress_ip or None, "status.egressIP")
