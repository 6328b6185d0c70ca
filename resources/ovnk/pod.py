"""Pod, as far as it is read: its namespace, and the node on which it runs."""

from __future__ import annotations

import msgspec

from resources.meta import Resource, Struct


class PodSpec(Struct, frozen=True):
    """The node of a Pod."""

    node_name: str = ""
    host_network: bool = False


class PodStatus(Struct, frozen=True):
    """The phase of a Pod."""

    phase: str = ""


class Pod(Resource, frozen=True):
    """One Pod."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    def __post_init__(self) -> None:
        """Drop labels and annotations: their changes are none of the row."""
        self.metadata.labels.clear()
        self.metadata.annotations.clear()

    @property
    def uses_network(self) -> bool:
        """True for a Pod on the network of its namespace that has not ended."""
        ended = self.status.phase in ("Succeeded", "Failed")
        return bool(self.spec.node_name) and not self.spec.host_network and not ended
