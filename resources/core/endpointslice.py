"""EndpointSlice (discovery.k8s.io/v1): the endpoints of a Service, with their nodes."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import force_setattr as share

from resources.meta import ObjectKey, Resource, Struct
from resources.shared_texts import shared

SERVICE_LABEL = "kubernetes.io/service-name"
API_SERVICE: Final = ("default", "kubernetes")
"""The Service of the Kubernetes API: its endpoints have the addresses of API servers."""
POD_ADDRESS: Final = ("",)
"""In place of the addresses of a Pod, which no reader looks at: they change with each Pod."""
SHARED_ENDPOINTS: Final = 1 << 14
"""The most different endpoints of Pods that are kept to be shared."""


class EndpointConditions(Struct, frozen=True):
    """discovery.EndpointConditions; `Endpoint` interprets absent ones as the API specifies."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


_CONDITIONS: Final[dict[EndpointConditions, EndpointConditions]] = {}
"""Different conditions of all endpoints: 27 at most."""
_OF_PODS: Final[dict[Endpoint, Endpoint]] = {}
"""Different endpoints of Pods: a few for each node."""


class Endpoint(Struct, frozen=True):
    """discovery.Endpoint."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = msgspec.field(default_factory=EndpointConditions)
    node_name: str | None = None

    def __post_init__(self) -> None:
        """Share what many endpoints have."""
        share(self, "conditions", _CONDITIONS.setdefault(self.conditions, self.conditions))
        if self.node_name is not None:
            share(self, "node_name", shared(self.node_name))

    @property
    def active(self) -> bool:
        """True if an EndpointSlice's endpoint accepts new connections: if it is ready.

        It is ready while it terminates where the Service publishes addresses that are not ready. One
        without the condition is ready unless it terminates.
        """
        ready = self.conditions.ready
        return not self.conditions.terminating if ready is None else ready

    @property
    def usable(self) -> bool:
        """True if an EndpointSlice's endpoint has an address, and is ready or serves until it ends."""
        ready = self.conditions.ready is not False or self.conditions.serving is True
        return bool(self.addresses) and ready


def _shared_endpoint(endpoint: Endpoint) -> Endpoint:
    """Return the one object for all Pods of a node with the same conditions."""
    if endpoint.node_name is None or not endpoint.addresses:
        return endpoint
    share(endpoint, "addresses", POD_ADDRESS)
    if len(_OF_PODS) >= SHARED_ENDPOINTS:
        _OF_PODS.clear()
    return _OF_PODS.setdefault(endpoint, endpoint)


class EndpointSlice(Resource, frozen=True):
    """One slice."""

    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()

    def __post_init__(self) -> None:
        """Share what many slices have; endpoints on a node are Pods, but for the API's."""
        share(self, "address_type", shared(self.address_type))
        if self.service_key != API_SERVICE:
            share(self, "endpoints", tuple(map(_shared_endpoint, self.endpoints)))

    @property
    def service_key(self) -> ObjectKey | None:
        """Namespace and name of the EndpointSlice's Service, from the label."""
        name = self.metadata.labels.get(SERVICE_LABEL)
        return (self.metadata.namespace, name) if name else None
