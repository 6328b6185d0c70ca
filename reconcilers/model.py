"""The neutral intent: what every API dialect compiles to, and all that the apply reconcilers read.

Frozen rows of the intent tables. A dialect (`reconcilers.dialect`) compiles its objects to them, the
apply reconcilers (`reconcilers.apply`) compare them with the speaker, ``waggle render`` prints them.
A prefix is its wire bytes (length octet and the significant octets, RFC 4271 section 4.3); text
appears at the edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from resources.enumeration import MAX_MESSAGE_CHARACTERS, bounded
from resources.kind import Kind
from resources.meta import Resource
from resources.secret_value import SecretValue
from speaker.api import BfdProfile, Confederation
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """Names one Kubernetes object; ``str()`` is ``Kind/namespace/name`` or ``Kind/name``."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``Kind/namespace/name`` or ``Kind/name``."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def ref_to(kind: Kind[Any], row: Resource) -> ObjectRef:
    """Return the reference to the object of a row."""
    return ObjectRef(kind.name, *row.key)


class PrefixRule(msgspec.Struct, frozen=True):
    """A prefix with the range of more specific lengths that it covers; exact with neither."""

    prefix: str
    ge: int | None = None
    le: int | None = None
    origin: ObjectRef | None = None
    """The object with the rule; None for a rule of the agent's own options."""
    label: str = ""
    """What the rule is called where it is not a selector of an object: ``AlwaysBlock``."""

    @property
    def sort_key(self) -> tuple[str | int, ...]:
        """Order rules by prefix and lengths, those without lengths first."""
        return (self.prefix, *(-1 if length is None else length for length in (self.ge, self.le)))

    def __str__(self) -> str:
        """Return the rule in the form of ``waggle routes received``: ``10.0.0.0/8 ge 16 le 24``."""
        lengths = (("ge", self.ge), ("le", self.le))
        return " ".join([self.prefix, *(f"{word} {n}" for word, n in lengths if n is not None)])


class InstanceImport(msgspec.Struct, frozen=True):
    """Routes that one instance takes from another one (VRF leaking)."""

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
    """Where ``origin`` has the VRF, for problems."""


class GracefulRestart(msgspec.Struct, frozen=True):
    """RFC 4724 for one peer; the time is in seconds."""

    restart_time: int


class SecretRef(msgspec.Struct, frozen=True):
    """The key of a Secret that has a peer's TCP MD5 password; never the password itself."""

    namespace: str
    name: str
    key: str = "password"
    verbatim: bool = False
    """Whether a newline at the end of the value is a part of the password."""

    @property
    def owner(self) -> ObjectRef:
        """The Secret."""
        return ObjectRef("Secret", self.namespace, self.name)

    def __str__(self) -> str:
        """Return the reference in the form of problems."""
        return f"Secret {self.namespace}/{self.name}"


class FieldRef(msgspec.Struct, frozen=True):
    """The field of an object that has a peer's TCP MD5 password; never the password itself.

    The row of the object has a `resources.secret_value.SecretValue` at the field.
    """

    object: ObjectRef
    field: str

    @property
    def owner(self) -> ObjectRef:
        """The object with the field."""
        return self.object

    def __str__(self) -> str:
        """Return the reference in the form of problems."""
        return f"{self.field} of {self.object}"


PasswordRef: TypeAlias = SecretRef | FieldRef


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

    Times are in seconds; their defaults are those of RFC 4271 section 10.
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
    """Where the first of ``origins`` has it, for problems."""
    families: tuple[Family, ...] = (IPV4_UNICAST, IPV6_UNICAST)
    route_set: str | None = None
    """The name of the route set that is advertised to this peer; None advertises nothing."""
    accept: tuple[PrefixRule, ...] | None = ()
    """Prefixes accepted from the peer; None is all, the empty tuple nothing."""
    accept_origins: tuple[ObjectRef, ...] = ()
    """Where ``accept`` is None: the objects that accept all, the one that decides first."""
    reject: tuple[PrefixRule, ...] = ()
    """Prefixes never accepted, whatever ``accept`` allows."""
    allowas_in_origin: bool = False
    """Whether a route whose AS path ends with the own AS is accepted: it is no loop, but a route of
    another node of the AS."""
    next_hops: tuple[NextHop, ...] = ()
    """Next hops other than the address of the session, by family: configured ones, or an address of
    the node for the prefixes of the family that the session's address is not of."""
    origins: tuple[ObjectRef, ...] = ()
    """The objects that configure it, the one that decides first."""
    held_password: SecretValue | None = None
    """While an earlier state of the configuration is in force: the password that it had."""
    down_reason: str | None = None
    """Why this peer must stay down (a missing Secret ...), for people."""
    unlimited_set: str | None = None
    """Where ``route_set`` has a limited number of prefixes: the set with all of them."""
    suppressed: tuple[SuppressedFamily, ...] = ()
    graceful_shutdown: GracefulShutdown | None = None
    """Set while the node is drained."""
    dialect: str = ""

    def next_hop(self, family: Family, *, configured: bool) -> str | None:
        """Return the next hop that an object has for a family, or the node's address; or None."""
        for hop in self.next_hops:
            if (hop.family, hop.configured) == (family, configured):
                return hop.address
        return None


class PendingDialect(msgspec.Struct, frozen=True, order=True):
    """A dialect that is not compiled yet, while others are: kinds of it cannot be read.

    What it has written before a restart stays: objects, claims, routes in the kernel.
    """

    dialect: str
    unread: tuple[str, ...]
    """The tables of these kinds."""


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
        """Return where the limit comes from, for people."""
        if self.learned:
            return "the peer ended the session: Maximum Number of Prefixes Reached"
        return "--advertise-peer-limit"


class NextHops(msgspec.Struct, frozen=True):
    """The next hops of the routes that a peer advertises, or advertised in its last session."""

    instance: str
    peer: str
    addresses: tuple[str, ...]


class Attributes(msgspec.Struct, frozen=True):
    """Path attributes that a route carries, the same for every peer of its set."""

    communities: tuple[int, ...] = ()
    large_communities: tuple[tuple[int, int, int], ...] = ()
    local_preference: int | None = None
    med: int | None = None
    """MULTI_EXIT_DISC (RFC 4271 section 5.1.4); None sends none."""
    next_hop: str | None = None
    """None is the address of the session itself."""
    incomplete: bool = False
    """Whether ORIGIN is INCOMPLETE (RFC 4271 section 5.1.1), and not IGP."""


class Origin(msgspec.Struct, frozen=True, order=True):
    """The object that caused a route, and the object with the rule that selected it."""

    object: ObjectRef
    rule: ObjectRef
    type: str = ""
    """Which of the object's addresses, in the words of the dialect: LoadBalancerIP, PodCIDR ..."""


class AddressRank(NamedTuple):
    """The rank of an address that a Service names, among those of its namespace and name.

    Where not all can be advertised, those with the lowest rank are.
    """

    created: str
    """The creationTimestamp of the Service, in UTC."""
    position: int
    """Of the address among those of the Service."""


class Contribution(msgspec.Struct, frozen=True):
    """The attributes that one origin gives one prefix of one route set."""

    origin: Origin
    attributes: Attributes
    source: str = ""
    """The route source that it comes from; filled in by the middle."""
    rank: AddressRank | None = None
    """Of an address that a Service names; filled in by the middle. None for all that administrators
    decide."""


class Route(msgspec.Struct, frozen=True):
    """One prefix of a route set: its contributions, and the attributes joined from them."""

    route_set: str
    family: Family
    nlri: bytes
    attributes: Attributes
    contributions: tuple[Contribution, ...]
    """In the order of their origins."""

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The objects that contribute the prefix."""
        return tuple(dict.fromkeys(contribution.origin for contribution in self.contributions))


class RouteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What is advertised to one peer for one prefix of one object, and which rule decides.

    ``instance`` and ``peer`` are None where it concerns all of them, ``family`` and ``nlri`` where
    the object has no such address.
    """

    instance: str | None
    peer: str | None
    object: ObjectRef | None
    type: str
    """The type of the object's address: LoadBalancerIP, ClusterIP, ExternalIP, PodCIDR, Interface,
    or the kind of a pool."""
    family: Family | None
    nlri: bytes | None
    advertised: tuple[bytes, ...]
    """The prefix, an aggregate of it, both, or nothing."""
    reason: str
    """One word; "Advertised" where something is advertised."""
    message: str
    """A sentence without its end, for people."""
    rule: ObjectRef | None = None
    """The object with the rule that decided."""


class Condition(msgspec.Struct, frozen=True):
    """One condition of an object's status (metav1.Condition), without its times."""

    object: ObjectRef
    type: str
    status: bool
    reason: str
    message: str = ""
    observed_generation: int | None = None
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect reports."""
    dialect: str = ""
    summary: str = ""
    """The text of ``status.status``, of a kind that has such a field beside its conditions."""


ProblemCategory: TypeAlias = Literal["invalid", "unresolved", "conflict", "unsupported"]


class Problem(msgspec.Struct, frozen=True, order=True):
    """A conflict or an invalid object: the objects, the field and the broken rule, for people."""

    objects: tuple[ObjectRef, ...]
    field: str
    message: str
    unconfigured: tuple[str, ...] = ()
    """What is not configured because of the problem: an instance, or an instance and its peer."""
    category: ProblemCategory = "invalid"
    """``unresolved``: a referenced object is missing; ``conflict``: objects contradict each other;
    ``unsupported``: valid, and not implemented."""
    dialect: str = ""
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect reports."""
    count: int = 1
    """The number of problems that it stands for: those that are not listed have one together."""
    of_tenant: bool = False
    """True if users of a namespace cause and solve it: it is apart from problems of administrators."""

    def __post_init__(self) -> None:
        """Bound the message, wherever it comes from."""
        if len(self.message) > MAX_MESSAGE_CHARACTERS:
            msgspec.structs.force_setattr(self, "message", bounded(self.message))


class Generated(msgspec.Struct, frozen=True):
    """One object that a dialect generates, whole, and the object that owns it.

    The operator writes it to the API server; without one, and where a dialect feeds another, it is
    read back in the same process.
    """

    object: ObjectRef
    owner: ObjectRef
    content: Any
    """The object as JSON: ``apiVersion``, ``kind``, ``metadata``, ``spec``."""
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect generates, not the part of one node."""
    dialect: str = ""


class Delete(msgspec.Struct, frozen=True):
    """Delete an object that a dialect generated earlier, if it still has this UID."""

    object: ObjectRef
    uid: str
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect deletes."""
    dialect: str = ""


class ObjectAnnotations(msgspec.Struct, frozen=True):
    """Annotations to set on an object that belongs to another writer; others of it are unchanged."""

    object: ObjectRef
    annotations: Mapping[str, str]
    uid: str = ""
    """Of the object: a recreated object of the same name is not annotated."""
    take_over: bool = False
    """Whether values of other managers are replaced: the annotations are the dialect's own, and another
    program has written them before."""
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect sets."""
    dialect: str = ""


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
