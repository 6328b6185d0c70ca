"""FRRConfiguration (v1beta1): BGP routers of selected nodes; the objects of one node are merged."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from resources.crds.schema_markers import ATOMIC_MAP, doc
from resources.errors import FieldError
from resources.frrk8s.evpn import Evpn
from resources.frrk8s.limits import Milliseconds
from resources.frrk8s.neighbor import Neighbor
from resources.label_selectors import LabelSelector
from resources.meta import Resource, Struct


class Import(Struct, frozen=True):
    """A VRF whose routes a router takes."""

    vrf: Annotated[str, doc("The VRF; default is the default one.")] = ""


class Router(Struct, frozen=True):
    """The BGP router of one VRF."""

    asn: Annotated[int, Meta(ge=0, le=4294967295), doc("The AS number of the router.")]
    id: Annotated[
        str, doc("The BGP identifier, as an IPv4 address; by default the node's IPv4 address.")
    ] = ""
    vrf: Annotated[str, doc("The VRF; without one the default one.")] = ""
    neighbors: Annotated[tuple[Neighbor, ...], doc("The neighbours.")] = ()
    prefixes: Annotated[
        tuple[str, ...], doc("The prefixes that the router originates; advertised where allowed.")
    ] = ()
    imports: Annotated[
        tuple[Import, ...], doc("The VRFs whose routes are in the table of this router, too.")
    ] = ()
    evpn: Annotated[Evpn | None, doc("EVPN; not supported.")] = None


class BfdProfile(Struct, frozen=True):
    """Settings of BFD sessions (RFC 5880); times in milliseconds."""

    name: Annotated[str, doc("The name that neighbours refer to.")]
    receive_interval: Annotated[
        Milliseconds | None, doc("The smallest interval between received packets. 300.")
    ] = None
    transmit_interval: Annotated[
        Milliseconds | None, doc("The smallest interval between sent packets. 300.")
    ] = None
    detect_multiplier: Annotated[
        Annotated[int, Meta(ge=2, le=255)] | None,
        doc("How many packets may be missing before the session is down. 3."),
    ] = None
    echo_interval: Annotated[Milliseconds | None, doc("The interval of echo packets. 50.")] = None
    echo_mode: Annotated[bool, doc("Whether the echo function is used; not for multihop.")] = False
    passive_mode: Annotated[bool, doc("Whether the neighbour has to begin.")] = False
    minimum_ttl: Annotated[
        Annotated[int, Meta(ge=1, le=254)] | None,
        doc("The smallest TTL of received packets of a multihop session. 254."),
    ] = None


class BgpConfig(Struct, frozen=True):
    """BGP."""

    routers: Annotated[
        tuple[Router, ...], Meta(max_length=50), doc("The routers, one for each VRF.")
    ] = ()
    bfd_profiles: Annotated[
        tuple[BfdProfile, ...], doc("The BFD profiles that neighbours of this object refer to.")
    ] = ()


class RawConfig(Struct, frozen=True):
    """Configuration of FRR as text; it has no effect."""

    priority: Annotated[int, doc("Has no effect.")] = 0
    raw_config: Annotated[str, doc("Has no effect, except a warning.")] = ""


class FRRConfigurationSpec(Struct, frozen=True):
    """The specification."""

    bgp: Annotated[BgpConfig, doc("BGP.")] = msgspec.field(default_factory=BgpConfig)
    raw: Annotated[RawConfig, doc("Configuration of FRR as text; not supported.")] = msgspec.field(
        default_factory=RawConfig
    )
    node_selector: Annotated[
        LabelSelector, doc("The nodes, by their labels; all nodes by default.", ATOMIC_MAP)
    ] = msgspec.field(default_factory=LabelSelector)


class FRRConfiguration(Resource, frozen=True):
    """One contribution to the routers of the nodes that it selects."""

    spec: Annotated[FRRConfigurationSpec, doc("The routers, and the nodes.")] = msgspec.field(
        default_factory=FRRConfigurationSpec
    )

    invalid: tuple[FieldError, ...] = ()
    """Not a field of the API: what the schema refuses. Such an object has no specification but its
    node selector: it concerns the nodes that it selects, as a problem."""

    @property
    def broken_rules(self) -> tuple[FieldError, ...]:
        """The errors of the FRRConfiguration: fields that the schema refuses."""
        return self.invalid
