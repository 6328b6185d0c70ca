"""Kinds that have a status only: FRRNodeState and BGPSessionState."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from resources.crds.schema_markers import doc
from resources.meta import Resource, Struct

NODE_LABEL: Final = "frrk8s.metallb.io/node"
PEER_LABEL: Final = "frrk8s.metallb.io/peer"
VRF_LABEL: Final = "frrk8s.metallb.io/vrf"


class NoSpec(Struct, frozen=True):
    """A specification without fields."""


class FRRNodeStateStatus(Struct, frozen=True):
    """The configuration of one node, for people."""

    desired_config: Annotated[
        str, doc("The configuration that the objects of the node give, without passwords.")
    ] = ""
    running_config: Annotated[
        str, doc("The configuration that is in force, in the same form, without passwords.")
    ] = ""
    last_conversion_result: Annotated[
        str, doc("success, or failed and what is wrong with the objects.")
    ] = ""
    last_reload_result: Annotated[
        str, doc("success, or why the configuration could not be applied.")
    ] = ""


class FRRNodeState(Resource, frozen=True):
    """One node."""

    spec: NoSpec = msgspec.field(default_factory=NoSpec)
    status: FRRNodeStateStatus = msgspec.field(default_factory=FRRNodeStateStatus)


class BGPSessionStateStatus(Struct, frozen=True):
    """The state of one session."""

    node: Annotated[str, doc("The node.")] = ""
    peer: Annotated[
        str, doc("The peer: an address, of IPv6 in full and with hyphens, or an interface.")
    ] = ""
    vrf: Annotated[str, doc("The VRF; empty is the default one.")] = ""
    bgp_status: Annotated[str, doc("The state of the BGP session.")] = ""
    bfd_status: Annotated[str, doc("The state of the BFD session, N/A without one.")] = ""


class BGPSessionState(Resource, frozen=True):
    """One session of one node."""

    spec: NoSpec = msgspec.field(default_factory=NoSpec)
    status: BGPSessionStateStatus = msgspec.field(default_factory=BGPSessionStateStatus)
