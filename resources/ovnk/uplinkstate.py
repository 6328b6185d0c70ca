"""UplinkState: the addresses of a node on an uplink of its own."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from resources.crds.schema_markers import doc
from resources.meta import Resource, Struct


class UplinkStateSpec(Struct, frozen=True):
    """The specification."""

    uplink_name: Annotated[str, Meta(min_length=1), doc("The name of the Uplink.")]
    node_name: Annotated[str, Meta(min_length=1), doc("The name of the Node.")]


class ReportedCondition(Struct, frozen=True):
    """A condition that another program has written, as far as it is read."""

    type: str = ""
    status: str = ""


class UplinkStateStatus(Struct, frozen=True):
    """The node's report, as far as it is read."""

    ip_addresses: tuple[str, ...] = msgspec.field(name="ipAddresses", default=())
    conditions: tuple[ReportedCondition, ...] = ()


class UplinkState(Resource, frozen=True):
    """An uplink on one node."""

    spec: Annotated[UplinkStateSpec, doc("The uplink, and the node.")]
    status: UplinkStateStatus = msgspec.field(default_factory=UplinkStateStatus)

    @property
    def is_ready(self) -> bool:
        """True if the UplinkState is complete: resolved, or with the host's data alone."""
        statuses = {condition.type: condition.status for condition in self.status.conditions}
        return statuses.get("Resolved", statuses.get("HostDataReady")) == "True"
