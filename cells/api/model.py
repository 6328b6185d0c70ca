"""The answers of the local API: the envelope and the items of the ``waggle`` command.

A stable interface: members are only ever added within ``cli.waggle/v1``. A value that is unknown
is omitted, never "N/A" or -1; lists are lists; times are RFC 3339 in UTC with names ending in
``Time``, durations are numbers with names ending in ``Seconds``. This module imports nothing of
the project, so that the command line can use it and start fast.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

API_VERSION = "cli.waggle/v1"

T = TypeVar("T")


def default_path() -> Path:
    """Return the default path of the socket of this user's agent."""
    user = os.geteuid()
    if user == 0:
        return Path("/run/waggle/agent.sock")
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user}")
    if os.access(runtime, os.W_OK | os.X_OK):
        return runtime / "waggle" / "agent.sock"
    # A user without a session (su, cron, a container). `cells.unix_socket` and `cells.api.client`
    # refuse a directory of that name that is another user's.
    return Path(f"/tmp/waggle-{user}/agent.sock")  # noqa: S108


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the items; members that are unset do not appear."""


class ErrorItem(Item, frozen=True, kw_only=True):
    """Why an answer is missing or partial."""

    code: str
    message: str
    node: str | None = None


class Envelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True, rename="camel"):
    """A list with its version, kind and errors."""

    api_version: str = API_VERSION
    kind: str
    generated_at: datetime
    items: list[T]
    errors: list[ErrorItem] = []
    version: str | msgspec.UnsetType = msgspec.UNSET
    """Of the program that answers."""
    notes: list[str] | msgspec.UnsetType = msgspec.UNSET
    """What may explain an answer without items, a sentence each; absent where nothing does."""
    truncated: bool | msgspec.UnsetType = msgspec.UNSET
    """True where there are more items than ``limit``; absent otherwise."""
    problems: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Why items are missing, a sentence each: invalid and unconfigured objects; or absent."""


class FamilyCount(Item, frozen=True, kw_only=True):
    """Routes of one family of a session."""

    family: str
    routes: int
    accepted: int | None = None
    """Received routes that entered the Loc-RIB."""
    not_kept: int | None = None
    """Received routes that are only counted (``--keep-received``); absent without any."""
    left_out: int | None = None
    """Routes beside them that are to be advertised and cannot be; absent without any."""
    reason: str | None = None
    """Why some are not sent, or why stale routes are kept."""


class PartItem(Item, frozen=True, kw_only=True):
    """A degraded part of the agent."""

    path: str
    message: str
    since_time: datetime


class ConditionItem(Item, frozen=True, kw_only=True):
    """A condition of an object."""

    kind: str
    namespace: str | None = None
    name: str
    type: str
    status: str
    reason: str
    message: str | None = None


class ObjectStatusItem(Item, frozen=True, kw_only=True):
    """The status that this agent reports on one object, as Kubernetes spells it."""

    kind: str
    namespace: str | None = None
    name: str
    status: dict[str, Any]


class UnusedObjectsItem(Item, frozen=True, kw_only=True):
    """Objects that this agent does not read, as their API dialect is off."""

    dialect: str
    objects: dict[str, int]
    """Their number by kind."""
    flag: str
    """The flag that switches the dialect on."""
    message: str
    """A sentence without its end, for people."""


class ProblemItem(Item, frozen=True, kw_only=True):
    """A conflict or an invalid object."""

    objects: list[str]
    field: str
    message: str
    count: int = 1
    """The number of problems that it stands for."""
    of_tenant: bool = False
    """True if users of a namespace cause and solve it."""


def problem_text(problem: Mapping[str, Any]) -> str:
    """Return a problem as one line: its first object, the field, the message."""
    parts = (*problem["objects"][:1], problem["field"], problem["message"])
    return ": ".join(part for part in parts if part)


class StatusItem(Item, frozen=True, kw_only=True):
    """One agent: readiness, health, sessions, and the status of the objects that it reports on."""

    node: str
    ready: bool
    waiting: list[str] = []
    """The closed readiness gates."""
    health: str
    degraded: list[PartItem] = []
    reporting: str
    """Whether the status is written anywhere."""
    peers: list[dict[str, Any]] = []
    """Sessions, as ``/v1/peers`` has them: the fields of `speaker.api.PeerStatus`."""
    objects: list[ObjectStatusItem] = []
    conditions: list[ConditionItem] = []
    """Of other objects, as far as this agent reads them."""
    problems: list[ProblemItem] = []
    """Objects that are invalid, that conflict, or that are not configured."""
    unused_objects: list[UnusedObjectsItem] = []
    """Of dialects that are off, by dialect."""
    unrestricted: list[str] = []
    """Which addresses of Services no rule restricts, as sentences."""
    prefix_tables: str = ""
    """The language of the speaker's prefix tables: Python or C; why not C, where it is unusable."""


class HostInstanceItem(Item, frozen=True, kw_only=True):
    """A BGP instance of a node."""

    name: str
    local_asn: int = msgspec.field(name="localASN")
    router_id: str = msgspec.field(name="routerID")
    vrf: str | None = None
    listening: list[str] = []
    listen_error: str | None = None
    """Why it does not listen where it shall."""


class InterfaceItem(Item, frozen=True, kw_only=True):
    """A network interface."""

    name: str
    mtu: int


class SupportItem(Item, frozen=True, kw_only=True):
    """What the kernel supports; absent where that is unknown."""

    tcp_md5: bool | None = msgspec.field(name="tcpMD5", default=None)
    vrf: bool | None = None
    ipv6: bool | None = None


class HostItem(Item, frozen=True, kw_only=True):
    """The host of an agent."""

    node: str
    kernel: str
    """Its release."""
    clock_synchronized: bool | None = None
    """Absent where the kernel does not say."""
    supports: SupportItem
    interfaces: list[InterfaceItem] = []
    instances: list[HostInstanceItem] = []


class OriginItem(Item, frozen=True, kw_only=True):
    """A Kubernetes object that caused a route."""

    kind: str
    namespace: str | None = None
    name: str

    def __str__(self) -> str:
        """Spell it as tables do: ``Service/default/web``, ``Node/a``."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class RouteItem(Item, frozen=True, kw_only=True):
    """One route of a table: available (Loc-RIB), advertised or received."""

    node: str
    instance: str
    peer: str | None = None
    """The peer that it is advertised to or received from; absent for a local route. Of an imported
    route it has the name of its instance before it: ``red/tor-1``."""
    imported_from: str | None = None
    """The instance that an available route is imported from."""
    family: str
    prefix: str
    path_id: int | None = msgspec.field(name="pathID", default=None)
    """The path identifier, where negotiated (RFC 7911)."""
    next_hop: str | None = None
    """Absent for a local route: each session's own address."""
    as_path: str | None = None
    origin: str | None = None
    communities: list[str] = []
    large_communities: list[str] = []
    local_preference: int | None = None
    med: int | None = None
    best: bool | None = None
    status: str | None = None
    """Why it is or is not used; of a received route ``accepted``, or the reason why not."""
    kept: bool | None = None
    """Whether a received route is kept while the peer is away (graceful restart)."""
    accepted: bool | None = None
    """Whether the import policy accepts it; of received routes, as are the next two."""
    filter: str | None = None
    """The selector that accepts it, or the reason why it is rejected."""
    object: OriginItem | None = None
    """The object with the deciding selector."""
    since_time: datetime | None = None
    """Time of its last change; of advertised routes."""
    origins: list[OriginItem] = []


class KernelHopItem(Item, frozen=True, kw_only=True):
    """One next hop of a route in the kernel."""

    via: str
    interface: str | None = None


class KernelRouteItem(Item, frozen=True, kw_only=True):
    """One route that shall be in the kernel, or is there from an earlier run."""

    node: str
    instance: str | None = None
    table: int
    metric: int
    family: str
    prefix: str
    type: str
    """unicast or blackhole."""
    next_hops: list[KernelHopItem] = []
    peers: list[str] = []
    """The peers of the best paths."""
    state: str
    """Installed, Pending, NotInstalled or Stale."""
    reason: str | None = None
    """One word, where it is not installed."""
    message: str | None = None
    """A sentence for people."""


class BfdIntervalsItem(Item, frozen=True, kw_only=True):
    """The required intervals of one end of a BFD session, and its detection multiplier."""

    transmit_seconds: float
    receive_seconds: float
    detect_multiplier: int


class BfdItem(Item, frozen=True, kw_only=True):
    """The BFD session of a peer; members that the BFD process has not reported are absent."""

    node: str
    instance: str
    peer: str
    address: str | None = None
    local_address: str | None = None
    device: str | None = None
    """The interface of link-local addresses, or the VRF."""
    multihop: bool = False
    profile: str | None = None
    strict: bool = False
    """Whether BGP waits until BFD is Up."""
    state: str
    """AdminDown, Down, Init, Up, or Unknown."""
    since_time: datetime | None = None
    diagnostic: str | None = None
    """Why the state changed last."""
    remote_state: str | None = None
    remote_diagnostic: str | None = None
    remote_independent: bool | None = None
    """The neighbor's C bit: its BFD continues while its control plane restarts."""
    local_discriminator: int | None = None
    remote_discriminator: int | None = None
    local_intervals: BfdIntervalsItem | None = None
    remote_intervals: BfdIntervalsItem | None = None
    transmit_interval_seconds: float | None = None
    """In use: packets are sent in this interval, less up to a quarter."""
    detection_seconds: float | None = None
    """In use: the path is down after this time without a packet."""
    passive: bool = False
    minimum_ttl: int | None = msgspec.field(name="minimumTTL", default=None)
    authentication: str | None = None
    ups: int = 0
    """How often the session came Up."""
    packets_sent: int | None = None
    packets_received: int | None = None
    longest_gap_seconds: float | None = None
    """The longest time between two received packets while the session was Up."""
    lateness_seconds: float | None = None
    """The latest that the process met a deadline, of any session."""
    problem: str | None = None
    """Why there is no session, or why it sends nothing."""


class ExplainItem(Item, frozen=True, kw_only=True):
    """Whether one prefix of one object is advertised to one peer, and why.

    ``peer`` is absent where it concerns a whole instance, ``instance`` where it concerns the node;
    ``prefix`` where the object has no such address.
    """

    node: str
    instance: str | None = None
    peer: str | None = None
    object: OriginItem | None = None
    address_type: str | None = None
    """Such as LoadBalancerIP, ClusterIP, ExternalIP, PodCIDR, Interface, or the kind of a pool."""
    family: str | None = None
    prefix: str | None = None
    advertised: bool
    advertised_prefixes: list[str] = []
    """The prefixes that the rules advertise for it: the prefix itself, an aggregate, or both."""
    reason: str
    """One word; "Advertised" where it is."""
    message: str | None = None
    """A sentence for people."""
    rule: OriginItem | None = None
    """The object with the deciding rule."""


class ReceivedExplainItem(Item, frozen=True, kw_only=True):
    """Whether one prefix is accepted from one peer, and by what."""

    node: str
    instance: str
    peer: str
    family: str
    prefix: str
    received: bool | None = None
    """Whether the peer has advertised it; absent without a running agent."""
    accepted: bool
    """Whether the import policy accepts it."""
    filter: str
    """The selector that accepts it, or the reason why it is rejected."""
    object: OriginItem | None = None
    """The object with the deciding selector; absent for options of the agent."""
    reason: str
    """One word; "Accepted" where the route is accepted, or would be."""
    message: str
    """A sentence for people."""


class WatchItem(Item, frozen=True, kw_only=True):
    """One change of one object; a line of the answer of ``/v1/watch``."""

    event_time: datetime
    """When the agent wrote the line."""
    type: str
    """ADDED, MODIFIED or DELETED, as the Kubernetes watch API has them."""
    kind: str
    namespace: str | None = None
    name: str


class PasswordItem(Item, frozen=True, kw_only=True):
    """Whether a candidate is the TCP MD5 password of a peer."""

    node: str
    instance: str
    peer: str
    equal: bool


class ClearedItem(Item, frozen=True, kw_only=True):
    """A session that was to be reset, or whose routes were to be sent again."""

    node: str
    instance: str
    name: str
    done: bool
    message: str
    """What is done, or why nothing is."""


class EventItem(Item, frozen=True, kw_only=True):
    """An Event that the agent reports on an object, as Kubernetes has them."""

    node: str
    type: str
    """Normal or Warning."""
    reason: str
    object: OriginItem
    message: str
    count: int = 1
    first_time: datetime
    last_time: datetime


class LogLevelItem(Item, frozen=True, kw_only=True):
    """The log level of a program."""

    level: str
    """In effect."""
    configured: str
    chosen: bool
    """Whether a person has set it, until the program ends."""
    set_by: list[str] = []
    """Dialects whose objects set a level."""


class ProcessItem(Item, frozen=True, kw_only=True):
    """The process of the agent."""

    node: str
    version: str
    pid: int
    start_time: datetime
    cpu_seconds: float
    """User and system time since the start."""
    resident_octets: int


class SpanItem(Item, frozen=True, kw_only=True):
    """One span of a change."""

    name: str
    trace_id: str = msgspec.field(name="traceID")
    span_id: str = msgspec.field(name="spanID")
    parent_span_id: str | None = msgspec.field(name="parentSpanID", default=None)
    links: list[str] = []
    """The span IDs of the causes of a round with several."""
    start_time: datetime
    duration_seconds: float
    attributes: dict[str, Any] = {}


class MetricItem(Item, frozen=True, kw_only=True):
    """One sample of a metric."""

    node: str
    name: str
    """Of the sample: that of the metric, of a histogram with ``_bucket``, ``_sum`` or ``_count``."""
    type: str
    """counter, gauge or histogram; of another program's metric also untyped."""
    labels: dict[str, str] = {}
    value: float
    description: str = ""


class ReconcilerItem(Item, frozen=True, kw_only=True):
    """One reconciler: what it needs, and its last run."""

    name: str
    order: int
    """Objects are created in this order, and deleted in the opposite one."""
    summary: str
    target: str
    """What holds the actual state."""
    tables: list[str]
    """The tables that the desired state is read from."""
    objects: int | None = None
    """Objects with a status; absent, as the numbers below, before the first run."""
    errors: int | None = None
    """Objects that fail, and are retried."""
    waiting: int | None = None
    """Objects that are still to be reconciled, failed ones included."""
    drifted: int | None = None
    """Objects and routes that full verifications found to differ, since the start."""
    last_run_time: datetime | None = None
    duration_seconds: float | None = None


class DriftItem(Item, frozen=True, kw_only=True):
    """An object that a full verification found to differ from the intent."""

    reconciler: str
    object: str
    missing: int = 0
    """Parts that were absent: routes of a route set, or the object itself."""
    unexpected: int = 0
    different: int = 0
    details: list[str] = []
    """The first prefixes of a route set, the fields of another object."""
    repaired: bool
    error: str | None = None
    """Why it was not repaired; it is retried."""


class PrefixChangeItem(Item, frozen=True, kw_only=True):
    """What became of an announcement or a withdrawal of prefixes by a router."""

    changed: int
    """The number of prefixes."""
    absent: list[str] = []
    """Prefixes to withdraw that the router does not originate."""
