"""Services that a dialect's objects select for advertisement, and Services that nodes advertise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from reconcilers.dialect.extension import Extension
from resources.core import EndpointSlice, Service
from resources.kind import Kind
from statedb import Snapshot


class ServiceAdvertisement(Protocol):
    """The objects and statuses of one moment."""

    def read(self, kind: Kind[Any], value: Mapping[str, Any]) -> None:
        """Add an object or status that decides about the advertisement of Services.

        Raises msgspec.ValidationError or ResourceError where it cannot be decoded.
        """
        ...

    def selected(self, service: Service) -> tuple[str, ...]:
        """Return the addresses of a Service that are selected for advertisement."""
        ...

    def follows_endpoints(self, service: Service) -> bool:
        """True if EndpointSlices decide which node advertises a Service."""
        ...

    def advertised(self, service: Service, slices: Sequence[EndpointSlice]) -> AbstractSet[str]:
        """Return the selected addresses of a Service that a node advertises.

        ``slices`` are given only if `follows_endpoints` is true.
        """
        ...


class ServiceStatuses(Extension, frozen=True):
    """The inputs of the operator's Events on Services."""

    begin: Callable[[Any, Snapshot], ServiceAdvertisement]
    """Given the operator's dialect."""
    kinds: tuple[Kind[Any], ...]
    """Kinds that are listed for each comparison, in this order; statuses are in no table."""
    namespace: Callable[[Any], str] = lambda _: ""
    """Given the operator's dialect: the namespace of these objects; empty for all."""
    reads_endpoints: bool = False
    """True if `ServiceAdvertisement.follows_endpoints` may be."""
