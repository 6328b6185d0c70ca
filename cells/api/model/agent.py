"""An agent and its host in answers: status, log level, process, spans, metrics, reconcilers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from cells.api.model.envelope import Item
from cells.api.model.objects import ConditionItem, ObjectStatusItem, ProblemItem, UnusedObjectsItem


class PartItem(Item, frozen=True, kw_only=True):
    """A degraded part of the agent."""

    path: str
    message: str
    since_time: datetime


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
    """Sentences about Service addresses that no rule restricts."""
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
    """The kernel's features; absent where they are unknown."""

    tcp_md5: bool | None = msgspec.field(name="tcpMD5", default=None)
    vrf: bool | None = None
    ipv6: bool | None = None


class HostItem(Item, frozen=True, kw_only=True):
    """The host of an agent."""

    node: str
    kernel: str
    """Its release."""
    clock_synchronized: bool | None = None
    """Absent where the kernel does not report it."""
    supports: SupportItem
    interfaces: list[InterfaceItem] = []
    instances: list[HostInstanceItem] = []


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
    """The place of the actual state."""
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
