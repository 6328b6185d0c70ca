"""Conditions: Accepted of RouteAdvertisements, TransportAccepted of ClusterUserDefinedNetworks.

Types, reasons and the text of the status are OVN-Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from reconcilers.frrk8s.raw_config import raw_meaning
from reconcilers.model import Condition, ObjectRef, ref_to
from reconcilers.ovnk.errors import NotAccepted
from resources.enumeration import enumerate_some
from resources.frrk8s.condition_types import PARTIALLY_APPLIED
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.ovnk.kinds import CLUSTER_NETWORK, ROUTE_ADVERTISEMENTS
from resources.ovnk.networks import ClusterUserDefinedNetwork
from resources.ovnk.routeadvertisements import RouteAdvertisements

ACCEPTED: Final = "Accepted"
TRANSPORT_ACCEPTED: Final = "TransportAccepted"
_ACCEPTED_MESSAGE: Final = (
    "ovn-kubernetes cluster-manager validated the resource and requested the necessary configuration "
    "changes"
)
"""OVN-Kubernetes' own text."""


def accepted(row: RouteAdvertisements, error: NotAccepted | None) -> Condition:
    """Return the condition Accepted of RouteAdvertisements."""
    ref, generation = ref_to(ROUTE_ADVERTISEMENTS, row), row.metadata.generation or None
    if error is None:
        return Condition(
            ref, ACCEPTED, True, "Accepted", _ACCEPTED_MESSAGE, generation, summary="Accepted"
        )
    text = str(error)
    return Condition(
        ref, ACCEPTED, False, error.reason, text, generation, summary=f"Not Accepted: {text}"
    )


def transport_accepted(
    rows: Iterable[ClusterUserDefinedNetwork],
    advertisers: Mapping[str, Mapping[str, bool]],
    vteps: Mapping[str, bool] | None,
) -> Iterator[Condition]:
    """Yield the conditions TransportAccepted of ClusterUserDefinedNetworks with a transport.

    ``advertisers`` has, by ClusterUserDefinedNetwork, whether the RouteAdvertisements that select it
    for pods are accepted; ``vteps`` has, by VTEP, whether it is; None where EVPN is not enabled.
    """
    for row in rows:
        network = row.spec.network
        if network.transport is None:
            continue
        status, reason, text = False, "", ""
        if network.evpn is not None:
            reason, text = _vtep(network.evpn.vtep, vteps)
        if not reason:
            of_network = advertisers.get(row.metadata.name, {})
            status, reason, text = _advertised(network.transport, of_network)
        ref = ObjectRef(CLUSTER_NETWORK.name, "", row.metadata.name)
        generation = row.metadata.generation or None
        yield Condition(ref, TRANSPORT_ACCEPTED, status, reason, text, generation)


def without_effect(ref: ObjectRef, row: FRRConfiguration) -> Condition | None:
    """Return the condition of an FRRConfiguration generated with EVPN: that has no effect."""
    typed = any(router.evpn is not None for router in row.spec.bgp.routers)
    if not typed and not raw_meaning(row.spec.raw.raw_config).has_evpn:
        return None
    return Condition(ref, PARTIALLY_APPLIED, True, "EVPN", "EVPN has no effect")


def _vtep(name: str, vteps: Mapping[str, bool] | None) -> tuple[str, str]:
    if vteps is None:
        return "EVPNConfigError", "EVPN is not enabled"
    if name not in vteps:
        return "VTEPNotFound", f"there is no VTEP {name}"
    if not vteps[name]:
        return "VTEPNotAccepted", f"VTEP {name} is not accepted"
    return "", ""


def _advertised(transport: str, of_network: Mapping[str, bool]) -> tuple[bool, str, str]:
    """Return status, reason and message of a network, given whether what selects it is accepted."""
    evpn = transport == "EVPN"
    if not of_network:
        reason = (
            "EVPNRouteAdvertisementsIsMissing" if evpn else "NoOverlayRouteAdvertisementsIsMissing"
        )
        return False, reason, "no RouteAdvertisements advertise the pod network"
    if not any(of_network.values()):
        reason = (
            "EVPNRouteAdvertisementsNotAccepted"
            if evpn
            else "NoOverlayRouteAdvertisementsNotAccepted"
        )
        names = enumerate_some(sorted(of_network), 3)
        return False, reason, f"RouteAdvertisements {names}: not accepted"
    reason = "EVPNTransportAccepted" if evpn else "NoOverlayTransportAccepted"
    return True, reason, f"the transport {transport} is configured"
