"""EndpointSlice (discovery.k8s.io/v1): the endpoints of a Service, with their nodes."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import force_setattr as share

from resources.meta import ObjectKey, Resource, Struct
from resources.shared_texts import shared

SERVICE_LABEL = "kubernetes.io/service-name"


class EndpointConditions(Struct, frozen=True):
    """discovery.EndpointConditions; `Endpoint` interprets absent ones as the API specifies."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


_CONDITIONS: Final[dict[EndpointConditions, EndpointConditions]] = {}
"""Different conditions of all endpoints: 27 at most."""


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
        """True if it accepts new connections: ready (the default) and not terminating."""
        return self.conditions.ready is not False and not self.conditions.terminating

    @property
    def usable(self) -> bool:
        """True if it has an address, and is ready (the default) or serves, even while it terminates."""
        ready = self.conditions.ready is not False or self.conditions.serving is True
        return bool(self.addresses) and ready


class EndpointSlice(Resource, frozen=True):
    """One slice."""

    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()

    @property
    def service_key(self) -> ObjectKey | None:
        """Namespace and name of its Service, from the label."""
        name = self.metadata.labels.get(SERVICE_LABEL)
        return (self.metadata.namespace, name) if name else None
