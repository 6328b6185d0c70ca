"""The types of what commands print that is no list of ``cli.waggle/v1``, for ``waggle schema``.

``waggle render`` and ``waggle check`` print one document, ``waggle watch`` a line for each change.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cells.api.model import WatchItem
from resources.json_names import json_name


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """A part of a document: unset values are null."""


class RuleItem(_Part, frozen=True, kw_only=True):
    """A prefix rule; without ``ge`` and ``le`` exactly this prefix."""

    prefix: str
    ge: int | None
    le: int | None


class RouteOrigin(_Part, frozen=True, kw_only=True):
    """An object that a route originates from."""

    kind: str
    namespace: str | None
    name: str
    type: str | None


class RenderedRoute(_Part, frozen=True, kw_only=True):
    """A route that a peer is sent."""

    prefix: str
    communities: list[str]
    large_communities: list[str]
    local_preference: int | None
    med: int | None
    next_hop: str | None
    origin: str
    origins: list[RouteOrigin]


class RenderedBfd(_Part, frozen=True, kw_only=True):
    """The BFD profile of a peer."""

    profile: str | None
    receive_interval: int
    transmit_interval: int
    detect_multiplier: int
    echo_interval: int
    echo_mode: bool
    passive_mode: bool
    minimum_ttl: int = msgspec.field(name="minimumTTL")
    multihop: bool | None
    strict: bool


class RenderedPeer(_Part, frozen=True, kw_only=True):
    """A peer."""

    name: str
    address: str | None
    interface: str | None
    peer_asn: int
    peer_type: str | None
    peer_port: int
    local_address: str | None
    local_asn: int | None
    hold_time: int
    keepalive_time: int
    connect_retry_time: int
    ebgp_multihop: int
    password: bool
    graceful_restart: dict[str, int] | None
    bfd: RenderedBfd | None
    families: list[str]
    next_hop_ipv4: str | None
    next_hop_ipv6: str | None
    advertise: list[RenderedRoute]
    never_accept: list[RuleItem]
    allowas_in_origin: bool = msgspec.field(name="allowASInOrigin")
    allowas_in: int = msgspec.field(name="allowASIn")
    accept: list[RuleItem] | str
    last_choice: dict[str, int] | None


class RenderedInstance(_Part, frozen=True, kw_only=True):
    """A BGP instance."""

    name: str
    vrf: str | None
    local_asn: int
    router_id: str
    listen_port: int | None
    confederation: dict[str, Any] | None
    imports: list[str]
    originate: list[str]
    peers: list[RenderedPeer]


class RenderedCondition(_Part, frozen=True, kw_only=True):
    """A condition of an object."""

    kind: str
    namespace: str | None
    name: str
    type: str
    status: str
    reason: str
    message: str


class ObjectProblem(_Part, frozen=True, kw_only=True):
    """A problem of objects."""

    objects: list[str]
    field: str
    message: str
    category: str
    count: int
    of_tenant: bool


class RenderedHop(_Part, frozen=True, kw_only=True):
    """A next hop of a route in the kernel."""

    via: str
    dev: str | None
    weight: int


class RenderedKernelRoute(_Part, frozen=True, kw_only=True):
    """A route that would stand in the kernel."""

    table: int
    prefix: str
    type: str
    protocol: int
    metric: int
    nexthops: list[RenderedHop]


class NotInstalledRoute(_Part, frozen=True, kw_only=True):
    """A received route that would not."""

    prefix: str
    peer: str
    reason: str
    message: str


class RenderedAnnotations(_Part, frozen=True, kw_only=True):
    """Annotations that the operator sets on an object of another writer."""

    kind: str
    namespace: str | None
    name: str
    set: dict[str, str]


class RenderDocument(_Part, frozen=True, kw_only=True):
    """The document of ``waggle render``."""

    node: str
    instances: list[RenderedInstance]
    conditions: list[RenderedCondition]
    generated: list[dict[str, Any]]
    deleted: list[str]
    annotations: list[RenderedAnnotations]
    problems: list[ObjectProblem]
    kernel: list[RenderedKernelRoute] = []
    """With ``--received``, as is the next member."""
    not_installed: list[NotInstalledRoute] = []


class CheckedProblem(ObjectProblem, frozen=True, kw_only=True):
    """A problem, and the nodes that have it."""

    nodes: list[str]


class AssumedNode(_Part, frozen=True, kw_only=True):
    """A node that objects select, and that the manifests do not have."""

    name: str
    labels: dict[str, str]


class CheckDocument(_Part, frozen=True, kw_only=True):
    """The document of ``waggle check``."""

    nodes: list[str]
    assumed_nodes: list[AssumedNode]
    unchecked_objects: list[str]
    problems: list[CheckedProblem]


DOCUMENTS: Final[dict[str, Any]] = {
    "CheckDocument": CheckDocument,
    "RenderDocument": RenderDocument,
    "WatchItem": WatchItem,
}
"""By the name of the schema."""
