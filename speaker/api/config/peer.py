"""The configuration of a peer, and of a range of peers."""

from __future__ import annotations

import ipaddress
from typing import Final, Literal

import msgspec

from speaker.api.config.config_checks import (
    BGP_PORT,
    DEFAULT_FAMILIES,
    INTERFACE_NAME,
    InvalidConfig,
    check_asn,
    check_host,
    check_next_hop,
    check_range,
)
from speaker.api.policy import Policy, PrefixRule
from speaker.api.secret import Secret
from speaker.iana import Role
from speaker.nlri import Family

MAX_ALLOWAS_IN: Final = 10
AddPathMode = Literal["none", "receive", "send", "both"]
PeerAs = int | Literal["internal", "external"]
"""A number; 0 is any AS; ``internal`` only our own, ``external`` any other. All but a number are
learnt from the peer's OPEN."""
Export = Literal["set", "all", "local", "none"]


Import = Literal["all", "none"] | tuple[PrefixRule, ...] | Policy
"""A list of prefixes is a policy that accepts the routes within one of them."""


class GracefulRestart(msgspec.Struct, frozen=True):
    """How routes survive the restart of one end (RFC 4724, 8538, 9494); times in seconds."""

    restart_time: int = 120
    """How long (0 to 4095) the peer should keep the local routes during a restart."""
    stale_time: int = 360
    """How long a restarted peer may take to advertise its routes again; the others are removed."""
    long_lived_time: int = 0
    """How much longer, at most, stale routes are kept as the least preferred, on both sides (RFC
    9494); 0 does not offer it."""
    notification: bool = True
    """Whether routes are also kept after a NOTIFICATION other than Hard Reset (RFC 8538)."""
    forwarding_preserved: bool = True
    """Whether packets are forwarded during a restart; on a node the kernel forwards them."""


class BfdProfile(msgspec.Struct, frozen=True):
    """The BFD session that a peer should have (RFC 5880, RFC 5883); intervals in milliseconds.

    Carried for a BFD process: the speaker speaks no BFD, and a change has no effect on sessions.
    """

    receive_interval: int = 300
    transmit_interval: int = 300
    detect_multiplier: int = 3
    echo_interval: int = 50
    echo_mode: bool = False
    """Whether the echo function is used."""
    passive: bool = False
    minimum_ttl: int = 254
    """Of received packets of a multihop session."""
    name: str = ""
    """The name of the profile, if it has one."""
    multihop: bool | None = None
    """Whether the session is multihop (RFC 5883); None where the session's TTL decides."""
    strict: bool = False
    """Whether BGP waits until BFD is Up (draft-ietf-idr-bgp-bfd-strict-mode)."""


class MaximumPrefixes(msgspec.Struct, frozen=True):
    """How many prefixes a peer may send in a family, before policy (RFC 4486 section 4)."""

    limit: int
    family: Family | None = None
    """None is every family, each with this limit."""
    warning_percent: int = 75
    """The part of the limit from which on there is a warning."""
    warning_only: bool = False
    """Beyond the limit, too, the session stays up."""
    restart_after: int | None = None
    """Seconds until the session is started again; None waits for a reset or another limit."""


class PeerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The common settings of configured and dynamic peers."""

    name: str
    peer_asn: PeerAs = 0
    local_asn: int | None = None
    """The AS number that this peer sees in place of the instance's."""
    hold_time: int = 90
    """Proposed in the OPEN; 0 for no keepalives, or at least 3 (RFC 4271 section 4.2)."""
    keepalive_time: int = 30
    connect_retry_time: int = 120
    idle_hold_time: int = 1
    """The first pause after an error; each further error doubles it (RFC 4271 section 8.1.1)."""
    ebgp_multihop: int = 1
    """The TTL towards eBGP peers; iBGP has the system's default."""
    delay_open_time: int = 0
    """How long the OPEN is delayed for the peer's, in seconds (DelayOpen, RFC 4271 section 8.1.1)."""
    role: Role | None = None
    """The local role towards an eBGP peer (RFC 9234)."""
    role_strict: bool = False
    """Whether a peer without a role is rejected."""
    enforce_first_as: bool | None = None
    """Whether the AS path of an eBGP peer's routes has to begin with its AS (RFC 4271 section 6.3).
    None is yes, except towards a route server, which leaves AS paths unchanged (RFC 7947)."""
    allowas_in_origin: bool = False
    """Whether a route whose AS path ends with the own AS is no loop: it was originated there, such as
    by another node of the AS behind an external peer (FRR's ``allowas-in origin``)."""
    allowas_in: int = 0
    """How often the own AS may be in the AS path of a route that is no loop, 0 to 10 (FRR's
    ``allowas-in`` with a number)."""
    maximum_prefixes: tuple[MaximumPrefixes, ...] = ()
    ttl_security: int = 0
    """The most hops to the peer, 1 to 254: packets from further away are dropped, and packets are
    sent with a TTL of 255 (RFC 5082). 0 is off."""
    password: Secret | None = None
    graceful_restart: GracefulRestart | None = None
    families: tuple[Family, ...] = DEFAULT_FAMILIES
    add_path: AddPathMode = "none"
    """Whether several paths of a prefix are received or sent, as negotiated (RFC 7911)."""
    route_set: str | None = None
    """With export "set": the route set to advertise; None advertises nothing."""
    # RFC 8212: without an export or import policy no route is advertised, and none is accepted.
    export: Export = "set"
    export_policy: Policy | None = None
    """The policy for the routes that ``export`` selects; None advertises them unchanged."""
    import_: Import = "none"
    """The routes that enter the Loc-RIB; the others stay visible in the Adj-RIB-In."""
    keep_received: int | None = None
    """With import "none": the number of received paths that are kept and shown. The rest is counted.
    None keeps all. Where routes are imported all are kept, whatever this is."""
    next_hop_ipv4: str | None = None
    next_hop_ipv6: str | None = None
    """The next hop of a family, in place of the session's local address."""
    default_next_hop_ipv4: str | None = None
    default_next_hop_ipv6: str | None = None
    """The next hop of a family that the session's local address is not of. That of IPv4 comes after
    the first IPv4 address of the session's interface, that of IPv6 before one of its addresses."""
    bfd: BfdProfile | None = None
    disabled_reason: str | None = None
    """Keeps the session down and is its reason in the status (a missing Secret, for example)."""
    disabled_for_a_while: bool = False
    """True with a `disabled_reason`: the routes that a restarting peer has left are kept meanwhile, as
    long as its restart may take."""

    @property
    def first_as_enforced(self) -> bool:
        """Whether routes whose AS path begins with another AS are malformed."""
        if self.enforce_first_as is None:
            return self.role != Role.ROUTE_SERVER_CLIENT
        return self.enforce_first_as

    def _check(self, kind: str) -> None:
        if self.peer_asn and not isinstance(self.peer_asn, str):
            check_asn(kind, self.name, "peer_asn", self.peer_asn)
        if self.local_asn is not None:
            check_asn(kind, self.name, "local_asn", self.local_asn)
        check_range(kind, self.name, "hold_time", self.hold_time, 0, 65535)
        if self.hold_time in (1, 2):
            raise InvalidConfig(kind, self.name, "hold_time", "0, or at least 3 seconds (RFC 4271)")
        check_range(kind, self.name, "keepalive_time", self.keepalive_time, 0, 65535)
        if self.hold_time and not 0 < self.keepalive_time <= self.hold_time:
            raise InvalidConfig(kind, self.name, "keepalive_time", "1 second up to the hold time")
        check_range(kind, self.name, "connect_retry_time", self.connect_retry_time, 1, 2**31 - 1)
        check_range(kind, self.name, "idle_hold_time", self.idle_hold_time, 0, 3600)
        check_range(kind, self.name, "ebgp_multihop", self.ebgp_multihop, 1, 255)
        check_range(kind, self.name, "ttl_security", self.ttl_security, 0, 254)
        check_range(kind, self.name, "keep_received", self.keep_received or 0, 0, 2**31 - 1)
        check_range(kind, self.name, "allowas_in", self.allowas_in, 0, MAX_ALLOWAS_IN)
        if self.ttl_security and self.ebgp_multihop != 1:
            raise InvalidConfig(kind, self.name, "ttl_security", "not together with ebgp_multihop")
        if self.graceful_restart is not None:
            restart = self.graceful_restart
            for field, value, highest in (
                ("restart_time", restart.restart_time, 4095),
                ("stale_time", restart.stale_time, 3600),
                ("long_lived_time", restart.long_lived_time, 0xFFFFFF),
            ):
                check_range(kind, self.name, f"graceful_restart.{field}", value, 0, highest)
        check_range(kind, self.name, "delay_open_time", self.delay_open_time, 0, 240)
        for limit in self.maximum_prefixes:
            check_range(kind, self.name, "maximum_prefixes.limit", limit.limit, 1, 0xFFFFFFFF)
            check_range(
                kind, self.name, "maximum_prefixes.warning_percent", limit.warning_percent, 1, 100
            )
            if limit.restart_after is not None:
                check_range(
                    kind, self.name, "maximum_prefixes.restart_after", limit.restart_after, 1, 86400
                )
        if self.role_strict and self.role is None:
            raise InvalidConfig(kind, self.name, "role_strict", "only with a role")
        if not self.families:
            raise InvalidConfig(kind, self.name, "families", "at least one family")
        for field, address, version in (
            ("next_hop_ipv4", self.next_hop_ipv4, 4),
            ("next_hop_ipv6", self.next_hop_ipv6, 6),
            ("default_next_hop_ipv4", self.default_next_hop_ipv4, 4),
            ("default_next_hop_ipv6", self.default_next_hop_ipv6, 6),
        ):
            if address is not None and check_next_hop(kind, self.name, field, address) != version:
                raise InvalidConfig(
                    kind, self.name, field, f"{address} is not an IPv{version} address"
                )


class PeerConfig(PeerSettings, frozen=True, kw_only=True):
    """One peer. Its address or interface and its AS are its identity."""

    address: str | None
    interface: str | None = None
    port: int = BGP_PORT
    local_address: str | None = None
    local_port: int | None = None
    passive: bool = False
    """Whether only the peer opens connections."""

    def __post_init__(self) -> None:
        """Reject an invalid configuration. Raises `InvalidConfig`."""
        self._check("peer")
        if self.address is None and self.interface is None:
            raise InvalidConfig("peer", self.name, "address", "an address or an interface")
        if self.address is None and self.password is not None:
            # A key belongs to an address; without one a connection could be accepted without the key.
            raise InvalidConfig("peer", self.name, "password", "only for a peer with an address")
        if self.address is not None:
            version = check_host("peer", self.name, "address", self.address)
            if self.local_address is not None and version != check_host(
                "peer", self.name, "local_address", self.local_address
            ):
                raise InvalidConfig(
                    "peer", self.name, "local_address", "of the same IP version as the address"
                )
        if self.interface is not None and not INTERFACE_NAME.fullmatch(self.interface):
            raise InvalidConfig(
                "peer", self.name, "interface", f"{self.interface!r} cannot be an interface's name"
            )
        check_range("peer", self.name, "port", self.port, 1, 65535)
        if self.local_port is not None:
            check_range("peer", self.name, "local_port", self.local_port, 0, 65535)

    @property
    def identity(self) -> tuple[str | None, str | None, PeerAs]:
        """A different identity makes it another peer."""
        return (self.address, self.interface, self.peer_asn)


class DynamicPeerConfig(PeerSettings, frozen=True, kw_only=True):
    """Dynamic peers: connections from any address of a prefix, up to a number of peers."""

    prefix: str
    limit: int = 1000

    def __post_init__(self) -> None:
        """Reject an invalid configuration. Raises `InvalidConfig`."""
        self._check("dynamic peer")
        try:
            network = ipaddress.ip_network(self.prefix)
        except ValueError as error:
            raise InvalidConfig("dynamic peer", self.name, "prefix", str(error)) from None
        if network.is_multicast:
            raise InvalidConfig(
                "dynamic peer", self.name, "prefix", f"{self.prefix} has no addresses of hosts"
            )
        check_range("dynamic peer", self.name, "limit", self.limit, 1, 100_000)

    def for_address(self, address: str) -> PeerConfig:
        """Return the peer that connected from this address; it is named after its address."""
        shared = {field: getattr(self, field) for field in PeerSettings.__struct_fields__}
        shared["name"] = address
        return PeerConfig(address=address, passive=True, **shared)
