"""NetworkAttachmentDefinition, and the network that its annotations and its CNI configuration name."""

from __future__ import annotations

from typing import Final

import msgspec

from resources.meta import Resource, Struct

PREFIX: Final = "k8s.ovn.org/"
NETWORK_NAME: Final = f"{PREFIX}network-name"
NETWORK_ID: Final = f"{PREFIX}network-id"
ROUTE_ADVERTISEMENTS: Final = f"{PREFIX}route-advertisements"
"""On a NetworkAttachmentDefinition: the names of the RouteAdvertisements of its network, as JSON. On
an FRRConfiguration, as label and annotation: that it is generated, and of what."""
CLUSTER_NETWORK_PREFIX: Final = "cluster_udn_"
"""Before the name of a ClusterUserDefinedNetwork in the name of its network."""


class NetworkAttachmentSpec(Struct, frozen=True):
    """The specification."""

    config: str = ""


class NetworkAttachmentDefinition(Resource, frozen=True):
    """The attachment of a namespace to a network."""

    spec: NetworkAttachmentSpec = msgspec.field(default_factory=NetworkAttachmentSpec)

    def __post_init__(self) -> None:
        """Drop the annotations of other programs: their changes are none of the row."""
        annotations = self.metadata.annotations
        for key in [key for key in annotations if not key.startswith(PREFIX)]:
            del annotations[key]

    @property
    def cluster_network(self) -> str | None:
        """The ClusterUserDefinedNetwork that controls the definition, by name."""
        for owner in self.metadata.owner_references:
            if owner.controller and owner.kind == "ClusterUserDefinedNetwork":
                return owner.name if owner.api_version == "k8s.ovn.org/v1" else None
        return None
