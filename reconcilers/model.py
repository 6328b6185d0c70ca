"""The neutral intent: what every API dialect compiles to, and the only thing that apply understands.

Rows of the intent tables. A dialect (``reconcilers.intent.*``) writes them, the apply reconcilers
(``reconcilers.apply``) read them and drive the speaker, ``waggle render`` prints them. Nothing here
knows a dialect, and nothing here does any work: frozen values only. A prefix is its wire bytes
(length octet and the significant octets, RFC 4271 section 4.3); text appears at the edges.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from speaker.nlri import Family


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """Names one Kubernetes object; ``str()`` is ``Kind/namespace/name`` or ``Kind/name``."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Spell the reference as problems and tables show it."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Source(enum.IntEnum):
    """Which reconciler announces a route; the value is its place in the order of apply."""

    INTERFACE = 20
    POD_CIDR = 30
    SERVICE = 40
    POD_IP_POOL = 50
    STATIC = 55


class Instance(msgspec.Struct, frozen=True):
    """One BGP router on this node."""

    name: str
    vrf: str | None
    local_asn: int
    router_id: str
    listen_port: int | None


class GracefulRestart(msgspec.Struct, frozen=True):
    """RFC 4724 for one peer; the time is in seconds."""

    restart_time: int


class SecretRef(msgspec.Struct, frozen=True):
    """Where a peer's TCP MD5 password is; never the password itself."""

    namespace: str
    name: str
    key: str = "password"


class BfdProfile(msgspec.Struct, frozen=True):
    """BFD settings of a peer (RFC 5880); intervals in milliseconds."""

    receive_interval: int
    transmit_interval: int
    detect_multiplier: int


class PrefixRule(msgspec.Struct, frozen=True, order=True):
    """A prefix with the range of more specific lengths that it covers."""

    prefix: str
    ge: int | None = None
    le: int | None = None


class Silent(msgspec.Struct, frozen=True):
    """Why nothing is advertised in a family: one word, a sentence, and the object that says so."""

    family: Family
    reason: str
    message: str
    rule: ObjectRef


class LastChoice(msgspec.Struct, frozen=True):
    """Routes that a peer shall use only while it has no others (RFC 8326, graceful shutdown).

    They have the community GRACEFUL_SHUTDOWN, the local preference 0 where one is told, and our AS
    so many times more in their path as ``prepend`` says.
    """

    reason: str
    """For people."""
    prepend: int = 0


class Peer(msgspec.Struct, frozen=True):
    """One session that an instance wants, with the route set that the peer is told."""

    instance: str
    name: str
    address: str | None
    interface: str | None
    peer_asn: int
    """0 accepts any AS and learns it from the OPEN."""
    peer_port: int
    local_address: str | None
    local_asn: int | None
    """Differs from the instance's, or None."""
    hold_time: int
    keepalive_time: int
    connect_retry_time: int
    ebgp_multihop: int
    password: SecretRef | None
    graceful_restart: GracefulRestart | None
    bfd: BfdProfile | None
    families: tuple[Family, ...]
    route_set: str | None
    """The name of the route set that this peer gets; None tells it nothing."""
    accept: tuple[PrefixRule, ...] | None = ()
    """Prefixes taken from the peer; None is all, the empty tuple nothing."""
    next_hop_ipv6: str | None = None
    """The node's own IPv6 address, for IPv6 prefixes over an IPv4 session."""
    origin: ObjectRef | None = None
    down_reason: str | None = None
    """Why this peer must not come up (a Secret that is missing ...), for people to read."""
    silent: tuple[Silent, ...] = ()
    """Families in which it is told nothing at all, whatever there is."""
    last_choice: LastChoice | None = None
    """How its routes are told while the node is drained; None as they are."""


class Attributes(msgspec.Struct, frozen=True):
    """Path attributes that a route carries, the same for every peer of its set."""

    communities: tuple[int, ...] = ()
    large_communities: tuple[tuple[int, int, int], ...] = ()
    local_preference: int | None = None
    next_hop: str | None = None
    """None is the address of the session itself."""
    incomplete: bool = False
    """Whether ORIGIN is INCOMPLETE (RFC 4271 section 5.1.1), and not IGP."""


class Origin(msgspec.Struct, frozen=True, order=True):
    """The object that caused a route, and the object with the rule that selected it."""

    object: ObjectRef
    rule: ObjectRef


class Contribution(msgspec.Struct, frozen=True):
    """One origin's wish for one prefix of one route set."""

    source: Source
    origin: Origin
    attributes: Attributes


class Route(msgspec.Struct, frozen=True):
    """One prefix of a route set: its contributions, and what they make together.

    Made by `reconcilers.intent.join.route`, which joins the contributions.
    """

    route_set: str
    family: Family
    nlri: bytes
    source: Source
    attributes: Attributes
    contributions: tuple[Contribution, ...]
    """In the order of their origins."""

    @property
    def origins(self) -> tuple[Origin, ...]:
        """What caused it."""
        return tuple(contribution.origin for contribution in self.contributions)


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of one prefix of one object at one peer, and why.

    ``instance`` and ``peer`` are None where it concerns all of them, ``family`` and ``nlri`` where
    the object has no such address.
    """

    instance: str | None
    peer: str | None
    object: ObjectRef | None
    type: str
    """Which of the object's addresses: LoadBalancerIP, ClusterIP, ExternalIP, PodCIDR,
    CiliumPodIPPool or Interface."""
    family: Family | None
    nlri: bytes | None
    told: tuple[bytes, ...]
    """What the peer is to be told for it: the prefix, an aggregate of it, both, or nothing."""
    reason: str
    """One word; "Advertised" where something is told."""
    message: str
    """A sentence without its end, for people."""
    rule: ObjectRef | None = None
    """The object with the rule that decided."""


class Condition(msgspec.Struct, frozen=True):
    """What is, or is not, the case with an object; `reconcilers.conditions` spells it for a status."""

    object: ObjectRef
    type: str
    status: bool
    reason: str
    message: str
    observed_generation: int | None = None


class Problem(msgspec.Struct, frozen=True, order=True):
    """A conflict or an invalid object: the objects, the field, and what is wrong, for people."""

    objects: tuple[ObjectRef, ...]
    field: str
    message: str
    leaves_out: tuple[str, ...] = ()
    """What this node does without because of it: an instance, or an instance and its peer."""


class Generated(msgspec.Struct, frozen=True):
    """One object that the operator writes, whole, and the object that owns it."""

    object: ObjectRef
    owner: ObjectRef
    content: Any


class ReconcileStatus(msgspec.Struct, frozen=True):
    """The result of reconciling one object: done, or the last error and the time of the next retry."""

    reconciler: str
    """Name of the reconciler."""
    object: str
    """The object's key, its parts joined with slashes: ``instance/peer``."""
    error: str | None = None
    attempts: int = 0
    """Failed attempts since the last success."""
    retry_at: float | None = None
    """Monotonic seconds, on the clock that the round is given."""
