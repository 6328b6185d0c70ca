"""EVPN of a router: VNIs, route distinguishers and route targets (RFC 7432, RFC 9135, RFC 9136).

Decoded and validated, not spoken: a router with it has a problem of category ``unsupported``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from resources.crds.patterns import up_to
from resources.crds.schema_markers import Rule, SchemaPart, doc
from resources.errors import FieldError, shortened
from resources.meta import Struct

_HALF: Final = up_to(65535)
_NUMBER: Final = up_to(4294967295)
_OCTET: Final = up_to(255)
_LARGE: Final = (
    "(6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}|[7-9][0-9]{4}|[1-9][0-9]{5,8}"
    "|[1-3][0-9]{9}|4[0-1][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}"
    "|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[0-1][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])"
)
"""An AS number of four octets: 65536 and more."""
_TYPED: Final = f"({_OCTET}\\.){{3}}{_OCTET}:{_HALF}|{_HALF}:{_NUMBER}|{_LARGE}:{_HALF}"
_IMPORTED: Final = f"{_TYPED}|\\*:{_NUMBER}"
ROUTE_DISTINGUISHER: SchemaPart = {"pattern": f"^({_TYPED})$"}
"""IPv4:0..65535, two-octet AS:0..4294967295 or four-octet AS:0..65535 (RFC 4364 section 4.2)."""
IMPORT_TARGET: SchemaPart = {"pattern": f"^({_IMPORTED})$"}
"""A route target, or any AS with ``*`` (RFC 4360 section 4)."""

RouteDistinguisher = Annotated[
    str, doc("The route distinguisher, such as 65000:100.", ROUTE_DISTINGUISHER)
]
ExportTarget = Annotated[str, Meta(extra_json_schema=dict(ROUTE_DISTINGUISHER))]
ImportTarget = Annotated[str, Meta(extra_json_schema=dict(IMPORT_TARGET))]
Vni = Annotated[int, Meta(ge=1, le=16777215)]
ImportTargets = Annotated[
    tuple[ImportTarget, ...], Meta(max_length=100), doc("Route targets that are imported.")
]
ExportTargets = Annotated[
    tuple[ExportTarget, ...], Meta(max_length=100), doc("Route targets of exported routes.")
]


class L2Vni(Struct, frozen=True):
    """A layer 2 VNI."""

    vni: Annotated[Vni, doc("The VXLAN network identifier.")]
    rd: RouteDistinguisher = ""
    import_rts: ImportTargets = msgspec.field(name="importRTs", default=())
    export_rts: ExportTargets = msgspec.field(name="exportRTs", default=())


class L3Vni(Struct, frozen=True, kw_only=True):
    """The layer 3 VNI of a VRF."""

    cel: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.advertisePrefixes.size() == 1",
            "has exactly one entry, unicast",
            "advertisePrefixes",
        ),
    )
    vni: Annotated[Vni, doc("The VXLAN network identifier.")]
    rd: RouteDistinguisher = ""
    import_rts: ImportTargets = msgspec.field(name="importRTs", default=())
    export_rts: ExportTargets = msgspec.field(name="exportRTs", default=())
    advertise_prefixes: Annotated[
        tuple[Literal["unicast"], ...],
        Meta(min_length=1, max_length=1),
        doc("The families whose prefixes are advertised as EVPN type 5 routes: unicast."),
    ]


class Evpn(Struct, frozen=True):
    """The EVPN of a router."""

    advertise_vnis: Annotated[
        Literal["Disabled", "All"], doc("Whether all VNIs of the node are advertised.")
    ] = msgspec.field(name="advertiseVNIs", default="Disabled")
    advertise_svi: Annotated[
        bool, doc("Whether the addresses of SVI interfaces are advertised.")
    ] = msgspec.field(name="advertiseSVI", default=False)
    l2vnis: Annotated[tuple[L2Vni, ...], Meta(max_length=10), doc("Layer 2 VNIs.")] = ()
    l3vni: Annotated[L3Vni | None, doc("The layer 3 VNI of the VRF.")] = None


def evpn_errors(evpn: Evpn, path: str) -> Iterator[FieldError]:
    """Yield invalid EVPN route distinguishers and targets of an FRRConfiguration's router."""
    vnis: list[tuple[str, L2Vni | L3Vni]] = [
        (f"{path}.l2vnis[{i}]", vni) for i, vni in enumerate(evpn.l2vnis)
    ]
    if evpn.l3vni is not None:
        vnis.append((f"{path}.l3vni", evpn.l3vni))
    for where, vni in vnis:
        if vni.rd and not re.fullmatch(_TYPED, vni.rd):
            text = f"{shortened(vni.rd)} is not a route distinguisher such as 65000:100"
            yield FieldError(f"{where}.rd", text)
        yield from _target_errors(vni.import_rts, _IMPORTED, f"{where}.importRTs")
        yield from _target_errors(vni.export_rts, _TYPED, f"{where}.exportRTs")


def _target_errors(targets: Sequence[str], pattern: str, path: str) -> Iterator[FieldError]:
    for i, text in enumerate(targets):
        if not re.fullmatch(pattern, text):
            reason = f"{shortened(text)} is not a route target such as 65000:100"
            yield FieldError(f"{path}[{i}]", reason)
