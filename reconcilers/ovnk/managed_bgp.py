"""Managed BGP: a full mesh of sessions between all nodes, for networks without tunnels.

The operator makes the source, an FRRConfiguration with all nodes as neighbours, and the
RouteAdvertisements; these are then generated of like any others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.model import Generated, ObjectRef
from reconcilers.ovnk.attached_networks import Attachment
from reconcilers.ovnk.stored_objects import object_to_store
from resources.addresses import canonical_address
from resources.core import Node
from resources.frrk8s.frrconfiguration import (
    BgpConfig,
    FRRConfiguration,
    FRRConfigurationSpec,
    Router,
)
from resources.frrk8s.neighbor import Neighbor
from resources.label_selectors import LabelSelector
from resources.meta import ObjectMeta
from resources.ovnk.kinds import ROUTE_ADVERTISEMENTS
from resources.ovnk.managed_fields import ManagedMeta
from resources.ovnk.networks import ClusterUserDefinedNetwork
from resources.ovnk.routeadvertisements import (
    ClusterNetworkSelector,
    NetworkSelector,
    RouteAdvertisements,
    RouteAdvertisementsSpec,
)

LABEL: Final = "k8s.ovn.org/managed-bgp"
"""Of the source, and of the ClusterUserDefinedNetworks with managed routing."""
SOURCE: Final = "ovnk-managed-bgp"
OF_DEFAULT: Final = "ovnk-managed-bgp-default"
OF_CLUSTER_NETWORKS: Final = "ovnk-managed-bgp-cudn"
_MANAGED: Final = LabelSelector(match_labels={LABEL: ""})


class ManagedBgp(NamedTuple):
    """The objects of managed BGP: they replace the cluster's."""

    source: FRRConfiguration
    advertisements: tuple[RouteAdvertisements, ...]

    def generated(self) -> tuple[Generated, ...]:
        """Return the FRRConfiguration and RouteAdvertisements of managed BGP as whole objects."""
        metadata = self.source.metadata
        owner = ObjectRef("FRRConfiguration", *self.source.key)
        source = object_to_store(
            metadata.name, metadata.namespace, self.source.spec, owner, labels=metadata.labels
        )
        return (source, *map(_whole, self.advertisements))


def managed_bgp(
    nodes: Iterable[Node],
    clusters: Sequence[ClusterUserDefinedNetwork],
    asn: int,
    namespace: str,
    *,
    default: bool,
) -> ManagedBgp | None:
    """Return the objects of managed BGP; None where no network has managed routing.

    ``default``: the default network has.
    """
    managed = [cluster for cluster in clusters if is_managed(cluster)]
    if not default and not managed:
        return None
    addresses = sorted({address for node in nodes for address in _addresses(node)})
    router = Router(asn=asn, neighbors=tuple(Neighbor(asn=asn, address=a) for a in addresses))
    source = FRRConfiguration(
        metadata=ObjectMeta(name=SOURCE, namespace=namespace, labels={LABEL: ""}),
        spec=FRRConfigurationSpec(bgp=BgpConfig(routers=(router,))),
    )
    advertisements = []
    if default:
        selector = NetworkSelector(network_selection_type="DefaultNetwork")
        advertisements.append(_advertisements(OF_DEFAULT, selector))
    if managed:
        selector = NetworkSelector(
            network_selection_type="ClusterUserDefinedNetworks",
            cluster_user_defined_network_selector=ClusterNetworkSelector(network_selector=_MANAGED),
        )
        advertisements.append(_advertisements(OF_CLUSTER_NETWORKS, selector))
    return ManagedBgp(source, tuple(advertisements))


def is_managed(row: ClusterUserDefinedNetwork) -> bool:
    """True if a ClusterUserDefinedNetwork has managed routing: managed BGP connects its nodes."""
    no_overlay = row.spec.network.no_overlay
    return no_overlay is not None and no_overlay.routing == "Managed"


def labelled(attachment: Attachment, managed: Collection[str]) -> Attachment:
    """Return an attachment with the label of managed BGP, if its network has managed routing."""
    row = attachment.row
    if attachment.network is None or attachment.network.cluster_network not in managed:
        return attachment
    metadata = replace(row.metadata, labels=with_label(row.metadata.labels))
    return attachment._replace(row=replace(row, metadata=metadata))


def with_label(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels with that of managed BGP, by which networks with managed routing are selected."""
    return {**labels, LABEL: ""}


def _addresses(node: Node) -> Iterable[str]:
    """Return the first internal address of each family: a node has one session with each other."""
    by_family: dict[bool, str] = {}
    for address in node.status.addresses:
        if address.type == "InternalIP":
            try:
                internal = canonical_address(address.address)
            except ValueError:
                continue
            by_family.setdefault(":" in internal, internal)
    return by_family.values()


def _advertisements(name: str, selector: NetworkSelector) -> RouteAdvertisements:
    return RouteAdvertisements(
        metadata=ManagedMeta(name=name),
        spec=RouteAdvertisementsSpec(
            network_selectors=(selector,),
            node_selector=LabelSelector(),
            frr_configuration_selector=_MANAGED,
            advertisements=("PodNetwork",),
        ),
    )


def _whole(row: RouteAdvertisements) -> Generated:
    ref = ObjectRef(ROUTE_ADVERTISEMENTS.name, "", row.metadata.name)
    content = {
        "apiVersion": ROUTE_ADVERTISEMENTS.api_versions[0],
        "kind": ROUTE_ADVERTISEMENTS.name,
        "metadata": {"name": row.metadata.name},
        "spec": msgspec.json.decode(msgspec.json.encode(row.spec)),
    }
    return Generated(ref, ref, content)
