"""The configuration of an instance."""

from __future__ import annotations

import ipaddress

import msgspec

from speaker.api.config.config_checks import (
    MAX_UINT32,
    InvalidConfig,
    check_asn,
    check_listening,
    check_next_hop,
    check_range,
)
from speaker.api.config.peer import Import
from speaker.nlri import parse_prefixes


class Confederation(msgspec.Struct, frozen=True):
    """A confederation (RFC 5065): its identifier, and the other member ASes."""

    identifier: int
    members: tuple[int, ...] = ()


class RouteAttributes(msgspec.Struct, frozen=True, cache_hash=True):
    """The path attributes of a local route; a session adds its own next hop and AS number.

    ``communities`` are 32-bit numbers (RFC 1997), ``large_communities`` triples (RFC 8092),
    ``extended_communities`` eight octets each (RFC 4360). ``local_preference`` is advertised to
    iBGP peers only, where None means 100. ``next_hop`` None is the local address of the session.
    """

    origin: int = 0
    med: int | None = None
    local_preference: int | None = None
    communities: tuple[int, ...] = ()
    large_communities: tuple[tuple[int, int, int], ...] = ()
    extended_communities: tuple[bytes, ...] = ()
    next_hop: str | None = None

    def __post_init__(self) -> None:
        """Reject attributes that no message can carry. Raises `InvalidConfig`."""
        check_range("route", "", "origin", self.origin, 0, 2)
        for field, value in (("med", self.med), ("local_preference", self.local_preference)):
            if value is not None:
                check_range("route", "", field, value, 0, MAX_UINT32)
        for community in self.communities:
            check_range("route", "", "communities", community, 0, MAX_UINT32)
        for large in self.large_communities:
            if len(large) != 3:
                raise InvalidConfig(
                    "route", "", "large_communities", f"{large} is not three numbers"
                )
            for number in large:
                check_range("route", "", "large_communities", number, 0, MAX_UINT32)
        for extended in self.extended_communities:
            if len(extended) != 8:
                raise InvalidConfig(
                    "route", "", "extended_communities", f"{extended.hex()} is not eight octets"
                )
        if self.next_hop is not None:
            check_next_hop("route", "", "next_hop", self.next_hop)


class InstanceImport(msgspec.Struct, frozen=True):
    """Routes of another instance that are in the Loc-RIB of this one, too (VRF route leaking).

    The best of the paths that the other instance originates or accepts itself: what it imports is
    not passed on. The path keeps its attributes, without what belongs to one AS where the two
    have different ones.
    """

    instance: str
    """Its name; it may be created later."""
    import_: Import = "all"


class InstanceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One BGP instance: its AS, its BGP Identifier, and its listening addresses (default: none).

    Another AS, identifier, VRF, confederation or listening address makes another router: the
    instance is recreated, with a Cease to its peers. All other changes leave the sessions.
    """

    name: str
    local_asn: int
    router_id: str
    listen: tuple[tuple[str, int], ...] = ()
    vrf: str | None = None
    confederation: Confederation | None = None
    """With a confederation ``local_asn`` is the local member AS."""
    selection_deferral_time: int = 120
    """After a restart: the most seconds that received routes are not advertised, until peers with
    graceful restart have sent End-of-RIB (RFC 4724 section 4.1)."""
    originate: tuple[str, ...] = ()
    """Prefixes in the Loc-RIB, without attributes of their own, besides `update_local`'s."""
    imports: tuple[InstanceImport, ...] = ()

    def __post_init__(self) -> None:
        """Reject an invalid configuration. Raises `InvalidConfig`."""
        check_asn("instance", self.name, "local_asn", self.local_asn)
        try:
            identifier = int(ipaddress.IPv4Address(self.router_id))
        except ValueError:
            identifier = 0
        if not identifier:
            raise InvalidConfig(
                "instance", self.name, "router_id", "an IPv4 address that is not 0.0.0.0 (RFC 6286)"
            )
        check_range(
            "instance", self.name, "selection_deferral_time", self.selection_deferral_time, 0, 4095
        )
        if self.confederation is not None:
            for asn in (self.confederation.identifier, *self.confederation.members):
                check_asn("instance", self.name, "confederation", asn)
        try:
            parse_prefixes(self.originate)
        except ValueError as error:
            raise InvalidConfig("instance", self.name, "originate", str(error)) from None
        names = [imported.instance for imported in self.imports]
        if self.name in names or len(set(names)) < len(names):
            raise InvalidConfig(
                "instance", self.name, "imports", "other instances, each of them once"
            )
        for address, port in self.listen:
            check_listening("instance", self.name, "listen", address)
            check_range("instance", self.name, "listen", port, 0, 65535)
