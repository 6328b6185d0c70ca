"""Conditions: Accepted of RouteAdvertisements, TransportAccepted of ClusterUserDefinedNetworks.

Types, reasons and the text of the status are OVN-Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from reconcilers.frrk8s.raw_config import raw_meaning
from reconcilers.model import Condition, ObjectRef, ref_to
from reconcilers.ovnk.errors import NotAccepted
from resources.frrk8s.condition_types import PARTIALLY_APPLIED
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.ovnk.kinds import CLUSTER_NETWORK, ROUTE_ADVERTISEMENTS
from resources.ovnk.networks import ClusterUserDefinedNetwork
from resources.ovnk.routeadvertisements import RouteAdvertisements
from resources.ovnk.vtep import Vtep

ACCEPTED: Final = "Accepted"
TRANSPORT_ACCEPTED: Final = "TransportAccepted"
_ACCEPTED_MESSAGE: Final = (
    "ovn-kubernetes cluster-manager validated the resource and requested the necessary configuration "
    "changes"
)
"""OVN-Kubernetes' own text."""


def accepted(row: RouteAdvertisements, error: NotAccepted | None) -> Condition:
    """Return the condition of RouteAdvertisements."""
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
    vteps: Mapping[str, Vtep],
    *,
    evpn: bool,
) -> Iterator[Condition]:
    """Yield the conditions of networks with a transport.

    ``advertisers`` has, by ClusterUserDefinedNetwork, whether the RouteAdvertisements that select it
    for pods are accepted; ``evpn``: whether EVPN is enabled.
    """
    for row in rows:
        network = row.spec.network
        if network.transport is None:
            continue
        word = network.transport
        reason, text = "", ""
        if network.evpn is not None:
            reason, text = _vtep(network.evpn.vtep, vteps, evpn=evpn)
        if not reason:
            reason, text = _advertised(word, advertisers.get(row.metadata.name, {}))
        ref = ObjectRef(CLUSTER_NETWORK.name, "", row.metadata.name)
        status = reason == f"{word}TransportAccepted"
        generation = row.metadata.generation or None
        yield Condition(ref, TRANSPORT_ACCEPTED, status, reason, text, generation)


def without_effect(ref: ObjectRef, row: FRRConfiguration) -> Condition | None:
    """Return the condition of a generated FRRConfiguration with EVPN, which is not spoken."""
    typed = any(router.evpn is not None for router in row.spec.bgp.routers)
    if not typed and not raw_meaning(row.spec.raw.raw_config).has_evpn:
        return None
    return Condition(ref, PARTIALLY_APPLIED, True, "EVPN", "EVPN has no effect")


def _vtep(name: str, vteps: Mapping[str, Vtep], *, evpn: bool) -> tuple[str, str]:
    vtep = vteps.get(name)
    if not evpn:
        return "EVPNConfigError", "EVPN is not enabled"
    if vtep is None:
        return "VTEPNotFound", f"there is no VTEP {name}"
    if not vtep.status.is_true(ACCEPTED):
        return "VTEPNotAccepted", f"VTEP {name} is not accepted"
    return "", ""


def _advertised(word: str, of_network: Mapping[str, bool]) -> tuple[str, str]:
    if not of_network:
        text = "no RouteAdvertisements advertise the pod network"
        return f"{word}RouteAdvertisementsIsMissing", text
    if not any(of_network.values()):
        names = ", ".join(sorted(of_network))
        return f"{word}RouteAdvertisementsNotAccepted", f"RouteAdvertisements {names}: not accepted"
    return f"{word}TransportAccepted", f"the transport {word} is configured"
