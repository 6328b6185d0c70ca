"""Routes in answers: of the tables, in the kernel, and why one is advertised or accepted."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cells.api.model.envelope import Item
from cells.api.model.objects import OriginItem


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
    basis: str | None = None
    """``objects``: the node is to advertise it by the objects of the cluster; no agent has answered.
    The next three members have its session in a status object."""
    session_state: str | None = None
    source: str | None = None
    """The status object."""
    status_time: datetime | None = None
    """Time of the status object's last change."""


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
    origins: list[OriginItem] = []
    """The objects that configure these peers."""
    state: str
    """Installed, Pending, NotInstalled or Stale."""
    reason: str | None = None
    """One word, where it is not installed."""
    message: str | None = None
    """A sentence for people."""


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
    basis: str | None = None
    """As of a route, as are the next three members."""
    session_state: str | None = None
    source: str | None = None
    status_time: datetime | None = None


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


class PrefixChangeItem(Item, frozen=True, kw_only=True):
    """The outcome of an announcement or a withdrawal of prefixes by a router."""

    changed: int
    """The number of prefixes."""
    absent: list[str] = []
    """Prefixes to withdraw that the router does not originate."""
