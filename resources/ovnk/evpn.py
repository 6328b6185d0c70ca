"""The EVPN of a network (RFC 7432, RFC 9136): its VTEP, and the VNIs of its MAC-VRF and IP-VRF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from resources.crds.schema_markers import doc
from resources.errors import FieldError, shortened
from resources.frrk8s.evpn import IMPORT_TARGET
from resources.meta import Struct

_TARGET: Final = re.compile(str(IMPORT_TARGET["pattern"]))


class EvpnVrf(Struct, frozen=True):
    """A MAC-VRF or IP-VRF."""

    vni: Annotated[int, Meta(ge=1, le=16777215), doc("The VXLAN network identifier.")]
    route_target: Annotated[
        str,
        Meta(max_length=21),
        doc("The route target, such as 65000:100; by default of AS number and VNI.", IMPORT_TARGET),
    ] = ""


class NetworkEvpn(Struct, frozen=True):
    """The EVPN of a network."""

    vtep: Annotated[str, Meta(min_length=1), doc("The name of the VTEP.")]
    mac_vrf: Annotated[EvpnVrf | None, doc("Of a Layer2 network, required.")] = msgspec.field(
        name="macVRF", default=None
    )
    ip_vrf: Annotated[EvpnVrf | None, doc("Of a Layer3 network, required.")] = msgspec.field(
        name="ipVRF", default=None
    )


def is_route_target(text: str) -> bool:
    """True for a route target of EVPN, which is a part of FRR's configuration text."""
    return _TARGET.fullmatch(text) is not None


def evpn_errors(evpn: NetworkEvpn, topology: str, path: str) -> Iterator[FieldError]:
    """Yield the rules that the EVPN of an OVN-Kubernetes network with a topology breaks."""
    if topology == "Layer2" and evpn.mac_vrf is None:
        yield FieldError(f"{path}.macVRF", "is required with topology Layer2")
    if topology == "Layer3":
        if evpn.ip_vrf is None:
            yield FieldError(f"{path}.ipVRF", "is required with topology Layer3")
        if evpn.mac_vrf is not None:
            yield FieldError(f"{path}.macVRF", "is for topology Layer2 alone")
    vrfs = {"macVRF": evpn.mac_vrf, "ipVRF": evpn.ip_vrf}
    for name, vrf in vrfs.items():
        if vrf is not None and vrf.route_target and not is_route_target(vrf.route_target):
            text = f"{shortened(vrf.route_target)} is not a route target such as 65000:100"
            yield FieldError(f"{path}.{name}.routeTarget", text)
    if evpn.mac_vrf is not None and evpn.ip_vrf is not None and evpn.mac_vrf.vni == evpn.ip_vrf.vni:
        yield FieldError(f"{path}.ipVRF.vni", f"{evpn.ip_vrf.vni} is the VNI of macVRF as well")
