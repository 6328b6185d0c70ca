"""Instances and peers, and what is known of their sessions."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from reconcilers.model.references import ObjectRef, PasswordRef
from resources.secret_value import SecretValue
from speaker.api import BfdProfile, Confederation
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family


class PrefixRule(msgspec.Struct, frozen=True):
    """A prefix with the range of more specific lengths that it covers; exact with neither."""

    prefix: str
    ge: int | None = None
    le: int | None = None
    origin: ObjectRef | None = None
    """The object with the rule; None for a rule of the agent's own options."""
    label: str = ""
    """The rule's name where it is not a selector of an object: ``AlwaysBlock``."""

    @property
    def sort_key(self) -> tuple[str | int, ...]:
        """The order of a peer's rules in the model: by prefix and lengths, without lengths first."""
        return (self.prefix, *(-1 if length is None else length for length in (self.ge, self.le)))

    def __str__(self) -> str:
        """Return the rule in the form of ``waggle routes received``: ``10.0.0.0/8 ge 16 le 24``."""
        lengths = (("ge", self.ge), ("le", self.le))
        return " ".join([self.prefix, *(f"{word} {n}" for word, n in lengths if n is not None)])


class InstanceImport(msgspec.Struct, frozen=True):
    """Routes that one instance takes from another instance (VRF leaking)."""

    instance: str
    accept: tuple[PrefixRule, ...] | None = ()
    """None is all, the empty tuple nothing."""


class Instance(msgspec.Struct, frozen=True):
    """One BGP router on this node; ``name`` is unique among the instances of all dialects."""

    name: str
    vrf: str | None
    local_asn: int
    router_id: str
    listen_port: int | None = None
    """None: incoming connections are rejected."""
    origin: ObjectRef | None = None
    """The object that configures it."""
    confederation: Confederation | None = None
    originates: tuple[str, ...] = ()
    """Prefixes that the instance itself originates, whichever route set a peer gets; each once."""
    redistributes: tuple[str, ...] = ()
    """The kernel's routes that ``originates`` has as far as they exist, in words."""
    imports: tuple[InstanceImport, ...] = ()
    dialect: str = ""
    configured_name: str | None = None
    """The name that the dialect gives, where another dialect's instance has it; otherwise None."""
    vrf_field: str = ""
    """The field of ``origin`` with the VRF, for problems."""


class GracefulRestart(msgspec.Struct, frozen=True):
    """RFC 4724 for one peer; the time is in seconds."""

    restart_time: int


class NextHop(msgspec.Struct, frozen=True):
    """The next hop that a peer is sent for the routes of one family."""

    family: Family
    address: str
    configured: bool = False
    """True where an object has it; otherwise it is an address of the node's own."""


class SuppressedFamily(msgspec.Struct, frozen=True):
    """A family in which nothing is advertised: one word, a sentence, and the object that decides."""

    family: Family
    reason: str
    message: str
    rule: ObjectRef


class GracefulShutdown(msgspec.Struct, frozen=True):
    """Routes that a peer shall use only while it has no others (RFC 8326).

    They carry the community GRACEFUL_SHUTDOWN and the local preference 0 towards internal peers, and
    the local AS is prepended ``prepend`` more times towards external ones.
    """

    reason: str
    """For people."""
    prepend: int = 0


PeerAs: TypeAlias = int | Literal["internal", "external"]
"""A number; 0 accepts any AS and learns it from the OPEN; or a class of numbers."""


class Peer(msgspec.Struct, frozen=True):
    """One configured neighbour of an instance, and the route set that is advertised to it.

    Times are in seconds; their defaults come from RFC 4271 section 10.
    """

    instance: str
    name: str
    address: str | None
    interface: str | None
    peer_asn: PeerAs
    peer_port: int = 179
    local_address: str | None = None
    local_asn: int | None = None
    """Differs from the instance's, or None."""
    hold_time: int = 90
    keepalive_time: int = 30
    connect_retry_time: int = 120
    idle_hold_time: int = 1
    """The first pause after a session has ended; each further one doubles it."""
    ebgp_multihop: int = 1
    """The TTL towards an external peer."""
    password: PasswordRef | None = None
    graceful_restart: GracefulRestart | None = None
    bfd: BfdProfile | None = None
    bfd_field: str = ""
    """The field of the first of ``origins`` with the profile, for problems."""
    families: tuple[Family, ...] = (IPV4_UNICAST, IPV6_UNICAST)
    route_set: str | None = None
    """The name of the route set that is advertised to this peer; None advertises nothing."""
    accept: tuple[PrefixRule, ...] | None = ()
    """Prefixes accepted from the peer; None is all, the empty tuple nothing."""
    accept_origins: tuple[ObjectRef, ...] = ()
    """With ``accept`` None: the objects that accept all, the deciding one first."""
    reject: tuple[PrefixRule, ...] = ()
    """Prefixes never accepted, whatever ``accept`` allows."""
    allowas_in_origin: bool = False
    """Whether a route whose AS path ends with the own AS is accepted: it is no loop, but a route of
    another node of the AS."""
    allowas_in: int = 0
    """How often the own AS may be in the AS path of an accepted route."""
    next_hops: tuple[NextHop, ...] = ()
    """Next hops other than the address of the session, by family: configured ones, or an address of
    the node for the prefixes of the family that the session's address is not of."""
    origins: tuple[ObjectRef, ...] = ()
    """The objects that configure it, the deciding one first."""
    held_password: SecretValue | None = None
    """While an earlier state of the configuration is in force: the password that it had."""
    down_reason: str | None = None
    """Why this peer must stay down (a missing Secret ...), for people."""
    unlimited_set: str | None = None
    """With a limited number of prefixes in ``route_set``: the set with all of them."""
    suppressed: tuple[SuppressedFamily, ...] = ()
    graceful_shutdown: GracefulShutdown | None = None
    """Set while the node is drained."""
    dialect: str = ""

    @property
    def end(self) -> str:
        """The address of the peer, or the interface on which it is found."""
        return self.address or self.interface or ""

    def next_hop(self, family: Family, *, configured: bool) -> str | None:
        """Return the next hop that the model's peer has for a family; or None."""
        for hop in self.next_hops:
            if (hop.family, hop.configured) == (family, configured):
                return hop.address
        return None


class SessionAddress(msgspec.Struct, frozen=True, order=True):
    """The local address that the session of a peer has, or had last: an address of this node."""

    instance: str
    peer: str
    address: str


class UnsentRoutes(msgspec.Struct, frozen=True, order=True):
    """A family of an Established session with routes that are to be advertised and cannot be."""

    instance: str
    peer: str
    family: Family
    reason: str
    """For people."""
    all_routes: bool = True
    """False if it has sent the other routes of the family."""


class LearnedLimit(msgspec.Struct, frozen=True, order=True):
    """The number of prefixes of a family that a peer accepts, as it ended a session with more of them.

    Its NOTIFICATION, Cease / Maximum Number of Prefixes Reached, may name it (RFC 4486 section 4).
    """

    instance: str
    peer: str
    family: Family
    limit: int
    configured: int = 0
    """The configured limit of the peer at that time; with another limit this row has no effect."""
    end: str = ""
    """The address or interface of the peer at that time: with another end this row has no effect. Empty
    in a file of a former release."""


class AdvertiseLimit(msgspec.Struct, frozen=True):
    """The limit of the prefixes of a family that a peer is sent, and its use."""

    instance: str
    peer: str
    family: Family
    limit: int
    learned: bool
    """True if the peer has made it known, False if it is configured."""
    prefixes: int
    """Prefixes that the peer would be sent without a limit."""
    waiting: int
    """Prefixes of Services that it is not sent because of the limit."""

    @property
    def reason(self) -> str:
        """Return where the advertise limit of the model's peer comes from, for people."""
        if self.learned:
            return "the peer ended the session: Maximum Number of Prefixes Reached"
        return "--advertise-peer-limit"


class NextHops(msgspec.Struct, frozen=True):
    """The next hops of the routes that a peer advertises, or advertised in its last session."""

    instance: str
    peer: str
    addresses: tuple[str, ...]
