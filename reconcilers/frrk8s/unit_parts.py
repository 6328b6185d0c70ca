"""The units of a merge, and the values that a unit gives the routers of a node. Pure data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from reconcilers.age import Age, age_by_name
from reconcilers.frrk8s.field_values import MED, Prefix, shown_vrf
from reconcilers.model import (
    Attributes,
    ObjectRef,
    PasswordRef,
    PeerAs,
    PrefixRule,
)
from reconcilers.redistribution import Redistribution, is_permitted
from resources.errors import FieldError
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.neighbor import AllowAsIn
from resources.host import KernelRoute
from resources.secret_value import SecretValue
from speaker.api import BfdProfile

INDEX: Final = re.compile(r"\[\d+\]")
COMPARED_PREFIXES: Final = 10_000
"""Of two versions of an object: with more, their comparison stops other work for too long."""
RAW_CONFIG: Final = "RawConfig"
EVPN: Final = "EVPN"
KERNEL_ROUTES: Final = "KernelRoutes"
"""Reasons of the condition PartiallyApplied."""


class Unit(msgspec.Struct, frozen=True):
    """One object that is merged, in the form of an FRRConfiguration."""

    ref: ObjectRef
    """The object that problems and origins of routes name."""
    row: FRRConfiguration
    """The FRRConfiguration, or what the object is translated to; its node selector is not read."""
    fields: Mapping[str, str] | None = None
    """Paths in the row, without indices, to paths in the object; None where the row is the object."""
    rules: Any = None
    """Rules of the feeding dialect's own routes for the neighbours of the row; see `merge`."""
    is_quiet: bool = False
    """True if the feeding dialect reports itself what has no effect: it is no problem then."""

    @property
    def age(self) -> Age:
        """The age of a unit, in whose order ``isolate`` merges units."""
        return age_by_name(self.row.metadata.creation_timestamp, self.ref)

    def path(self, path: str) -> str:
        """Return the path in a unit's own object for a path in its FRRConfiguration."""
        return path if self.fields is None else self.fields.get(INDEX.sub("", path), "")


def is_same_unit(one: Unit, other: Unit) -> bool:
    """True if units have equal rows; of large FRRConfigurations, the same row."""
    if one.row is other.row:
        return True
    count = sum([len(router.prefixes) for router in one.row.spec.bgp.routers])
    return count <= COMPARED_PREFIXES and one.row == other.row


class NeighborKey(NamedTuple):
    """Identifies a neighbour of a node."""

    vrf: str
    """Empty for the default one."""
    end: str
    """The address, or the name of the interface."""
    is_interface: bool = False

    def __str__(self) -> str:
        """Return the neighbour for people, with the VRF unless it is the default one."""
        return f"neighbor {self.end}" + (f" in VRF {self.vrf}" if self.vrf else "")


class Session(NamedTuple):
    """The settings of a session that are compared, in the order of the conflicts C3 to C13 and C15.

    Defaults are filled in: a setting that is written out equals an absent one.
    """

    asn: PeerAs
    port: int
    sourceaddress: str | None
    password: PasswordRef | None
    """Compared by the octets that it resolves to."""
    bfd_profile: str | None
    ebgp_multi_hop: bool
    dual_stack: bool
    hold_time: int
    keepalive_time: int
    connect_time: int
    local_asn: int | None
    next_hop_ipv4: str | None
    next_hop_ipv6: str | None


class NeighborSettings(NamedTuple):
    """The settings of a neighbour in one entry of a unit, but for its routes.

    One value for all entries that set the same: a merge costs the different ones.
    """

    session: Session
    graceful_restart: bool
    families: frozenset[str]
    """unicast, evpn."""
    accept: frozenset[PrefixRule] | None
    """None accepts all."""
    password: SecretValue | None
    """The password that is a field of the object."""
    allow_as_in: AllowAsIn


class RedistributedPart(NamedTuple):
    """Routes of the kernel that an object advertises to a neighbour, as far as the kernel has them."""

    redistributions: tuple[Redistribution, ...]
    permitted: tuple[PrefixRule, ...] | None
    """Prefixes of these routes; None is all."""
    attributes: Mapping[Prefix, Attributes]
    """Prefixes that have attributes of their own, or are permitted beside ``permitted``."""

    def routes(self, routes: Iterable[KernelRoute]) -> dict[Prefix, Attributes]:
        """Return the routes of the kernel that a unit advertises to a neighbour."""
        return {
            destination: self.attributes.get(destination, REDISTRIBUTED)
            for redistribution in self.redistributions
            for destination in redistribution.prefixes(routes)
            if destination in self.attributes
            or self.permitted is None
            or is_permitted(self.permitted, *destination)
        }


REDISTRIBUTED: Final = Attributes(med=MED, incomplete=True)
"""ORIGIN is INCOMPLETE, as FRR has it for what ``redistribute`` originates."""


class NeighborPart(NamedTuple):
    """The fields that one entry of a unit sets of a neighbour."""

    key: NeighborKey
    path: str
    """Such as ``spec.bgp.routers[0].neighbors[1]``."""
    settings: NeighborSettings
    routes: Mapping[Prefix, Attributes]
    """The advertised routes; one mapping for all neighbours of the unit with the same routes."""
    preferences: Mapping[Prefix, str]
    """The paths of the entries that give a prefix a local preference."""
    redistributed: RedistributedPart | None = None

    @property
    def session(self) -> Session:
        """The session settings that a unit sets of a neighbour, which the merge compares."""
        return self.settings.session


class RouterPart(NamedTuple):
    """The fields that one entry of a unit sets of a router."""

    vrf: str
    path: str
    asn: int
    router_id: str | None
    prefixes: frozenset[Prefix]
    imports: frozenset[str]
    neighbors: tuple[NeighborPart, ...]
    redistributions: tuple[Redistribution, ...] = ()

    def __str__(self) -> str:
        """Return the router for people."""
        return f"router of VRF {shown_vrf(self.vrf)}"


class ProfilePart(NamedTuple):
    """A BFD profile of a unit."""

    path: str
    profile: BfdProfile


class Missing(NamedTuple):
    """An import of a VRF that no object of the node has a router of: one may come."""

    path: str
    vrf: str
    """As it is shown."""


class RawRoutes(NamedTuple):
    """Redistribution in raw configuration."""

    redistributions: tuple[tuple[str, Redistribution], ...] = ()
    """By VRF."""
    neighbors: tuple[tuple[str, str, RedistributedPart], ...] = ()
    """By VRF and end."""


class Compiled(NamedTuple):
    """One unit alone: what it gives, or the rules that it breaks."""

    routers: tuple[RouterPart, ...] = ()
    profiles: tuple[ProfilePart, ...] = ()
    errors: tuple[FieldError, ...] = ()
    """Rules that the object breaks; with any of them it gives nothing."""
    missing: tuple[Missing, ...] = ()
    """References to VRFs that no object of the node has a router of."""
    unsupported: tuple[tuple[str, FieldError], ...] = ()
    """Fields without effect, with the reason of the condition PartiallyApplied."""
    claims: tuple[Any, ...] = ()
    """Settings that may not differ from other units (`reconcilers.frrk8s.claims`), but for passwords
    that are set: these follow Secrets."""
    passwords: tuple[NeighborPart, ...] = ()
    """The neighbours with a password."""
    allowas_in_origin: frozenset[tuple[str, str]] = frozenset()
    """Neighbours, also of other units, by VRF and end, of which routes that end with the own AS are
    accepted."""
    raw_routes: RawRoutes = RawRoutes()
    """Redistribution of routers and neighbours, also of other units."""


VrfPrefixes: TypeAlias = Mapping[str, frozenset[Prefix]]
"""The prefixes of the routers of the node, by VRF."""


class UnitFindings:
    """Collects the findings of one object; all of them are reported, in the order of its fields."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.missing: list[Missing] = []
        """VRFs that it imports and no object has."""
        self.unsupported: list[tuple[str, FieldError]] = []
        """Fields without effect, each with a reason of the condition PartiallyApplied."""

    def error(self, path: str, message: str) -> None:
        """Add a rule that a unit breaks."""
        self.errors.append(FieldError(path, message))

    def no_effect(self, reason: str, path: str, message: str) -> None:
        """Add a field of a unit that has no effect."""
        self.unsupported.append((reason, FieldError(path, message)))
