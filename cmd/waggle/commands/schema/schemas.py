"""JSON Schemas of the answers of all commands, from the types that encode them.

A schema is that of the whole answer: the envelope of ``cli.waggle/v1`` with items of one kind. Within
the version members are only added, so that an unknown member is valid (draft 2020-12).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from cells.api.model import (
    API_VERSION,
    BfdItem,
    ErrorItem,
    Item,
    KernelRouteItem,
    RouteItem,
)
from waggle.commands.schema.document_schemas import DOCUMENTS

Json: TypeAlias = dict[str, Any]
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
REF: Final = "#/$defs/{name}"


class ActionItem(Item, frozen=True, kw_only=True):
    """An action of the speaker behind an input of a recording."""

    seq: int
    time_seconds: float
    input: str
    action: str
    peer: str | None = None
    connection: int | None = None
    hex: str | None = None
    reader: int | None = None
    detail: str | None = None


class MessageItem(Item, frozen=True, kw_only=True):
    """A BGP message; its other members are the fields of its kind."""

    kind: str | None = None


class NoItem(Item, frozen=True, kw_only=True):
    """An item of an answer that never has one."""


class BugreportItem(Item, frozen=True, kw_only=True):
    """A file of the archive."""

    name: str
    octets: int
    error: str | None = None


class CheckItem(Item, frozen=True, kw_only=True):
    """A finding of waggle doctor, or a check without any."""

    check: str
    result: str
    node: str | None = None
    object: str | None = None
    evidence: str | None = None
    remedy: str | None = None


class CompletionItem(Item, frozen=True, kw_only=True):
    """The completion of a shell: its script, the file that it is for, and the command of that file."""

    shell: str
    file: str
    command: str
    script: str


class PageAddressItem(Item, frozen=True, kw_only=True):
    """The address that admits one browser to the page of waggle ui, and where that listens."""

    url: str
    address: str
    port: int


class PageItem(Item, frozen=True, kw_only=True):
    """A page of the documentation."""

    name: str
    title: str
    text: str | None = None


class ReasonItem(Item, frozen=True, kw_only=True):
    """A reason word in one of its places."""

    reason: str
    topic: str
    meaning: str
    remedy: str | None = None


class RouterConfigurationItem(Item, frozen=True, kw_only=True):
    """A valid configuration of a router; ``prefixes`` are originated."""

    file: str
    asn: int
    router_id: str = msgspec.field(name="routerID")
    neighbors: int
    prefixes: int


class SchemaItem(Item, frozen=True, kw_only=True):
    """A kind of answers, and its schema."""

    kind: str
    schema: dict[str, Any]


class RouteCountItem(Item, frozen=True, kw_only=True):
    """The number of routes of one node that are selected."""

    node: str
    routes: int
    basis: str | None = None
    status: str | None = None


class PlanProblemItem(Item, frozen=True, kw_only=True):
    """A problem before or after a change."""

    objects: list[str]
    field: str
    message: str
    change: str
    nodes: list[str]


class PlanSummary(Item, frozen=True, kw_only=True):
    """The numbers of nodes, and of changes by kind."""

    nodes: int
    changed_nodes: int
    advertised_routes: int
    instances: dict[str, int]
    sessions: dict[str, int]
    routes: dict[str, int]
    kernel: dict[str, int]


class FleetSummary(Item, frozen=True, kw_only=True):
    """The answers of all nodes in one item."""

    nodes: int
    answered: int
    sessions: int | None = None
    established: int | None = None
    versions: dict[str, int]
    clock_skew_seconds: dict[str, float] | None = None


def item_types() -> dict[str, Any]:
    """Return the type of the items of each kind of answers."""
    from cells.api import history, model
    from cells.hive.health import Status
    from cells.hive.show import CellView
    from reconcilers.plan.changes import NodePlan
    from speaker.api import CollectorStatus, PeerStatus
    from waggle.demo_changes import DemoItem
    from waggle.dialects import DIALECTS

    peer = _status("PeerItem", PeerStatus, model.PeerMembers)
    return {
        "ActionList": ActionItem,
        "BfdSessionList": BfdItem,
        "BugreportList": BugreportItem,
        "CellList": CellView,
        "CheckList": CheckItem,
        "ClearedList": model.ClearedItem,
        "PasswordList": model.PasswordItem,
        "CollectorList": _status("CollectorItem", CollectorStatus, Item),
        "CompletionList": CompletionItem,
        "DemoList": DemoItem,
        "DriftList": model.DriftItem,
        "ErrorList": NoItem,
        "EventList": model.EventItem,
        "ExplainList": model.ExplainItem,
        "HealthReport": Status,
        "HistoryList": history.HistoryItem,
        "HostList": model.HostItem,
        "IntentList": dict[str, Any],
        "KernelInputList": dict[str, Any],
        "KernelRouteList": KernelRouteItem,
        "LogLevelList": model.LogLevelItem,
        "MessageList": MessageItem,
        "MetricList": model.MetricItem,
        "PageAddressList": PageAddressItem,
        "PageList": PageItem,
        "PeerCountList": model.PeerCountItem,
        "PeerList": peer,
        "PlanList": NodePlan,
        "PrefixChangeList": model.PrefixChangeItem,
        "ProcessList": model.ProcessItem,
        "ReasonList": ReasonItem,
        "ReceivedExplainList": model.ReceivedExplainItem,
        "ReconcilerList": model.ReconcilerItem,
        "RouteCountList": RouteCountItem,
        "RouteList": RouteItem,
        "RouterConfigurationList": RouterConfigurationItem,
        "SchemaList": SchemaItem,
        "SpanList": model.SpanItem,
        "StatusList": model.StatusItem,
        "TopList": _reading(peer),
        **{
            kind: item
            for subcommand in DIALECTS.subcommands.values()
            for kind, item in subcommand.load().items.items()
        },
    }


MEMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "CheckList": {"summary": dict[str, int]},
    "ExplainList": {"kernel": list[KernelRouteItem], "summary": FleetSummary},
    "PeerList": {"summary": FleetSummary},
    "PlanList": {"problems": list[PlanProblemItem], "summary": PlanSummary},
    "ReceivedExplainList": {
        "kernel": list[KernelRouteItem],
        "paths": list[RouteItem],
        "summary": FleetSummary,
    },
    "RouteCountList": {"summary": FleetSummary},
    "RouteList": {"count": int, "summary": FleetSummary},
    "StatusList": {"summary": FleetSummary},
}
"""Members of the answers of a kind, beside the members of every envelope."""
ADDED: Final[Mapping[str, Mapping[str, Any]]] = {"PlanList": {"nodes": list[str]}}
"""Members of items that their type does not have."""
ALWAYS: Final[Mapping[str, Sequence[str]]] = {
    "PeerList": ("node", "instance", "name", "state"),
    "StatusList": ("node", "health", "reporting"),
}
"""Required members of items that may be of status objects: agents have more than these."""


def kinds() -> list[str]:
    """Return the names of all schemas."""
    return [*item_types(), *DOCUMENTS]


def schema(kind: str) -> Json:
    """Return the schema of a kind. Raises KeyError for an unknown kind."""
    if kind in DOCUMENTS:
        return _of_document(kind)
    types = item_types()
    extra = dict(MEMBERS.get(kind, {}))
    added = dict(ADDED.get(kind, {}))
    wanted = (types[kind], list[ErrorItem], *extra.values(), *added.values())
    (item, errors, *others), definitions = msgspec.json.schema_components(wanted, ref_template=REF)
    if added:
        name = item["$ref"].rpartition("/")[2]
        members = dict(zip(added, others[len(extra) :], strict=True))
        definitions[name]["properties"] = {**members, **definitions[name]["properties"]}
    for definition in definitions.values():
        _without_null(definition)
    if kind in ALWAYS:
        definitions[item["$ref"].rpartition("/")[2]]["required"] = list(ALWAYS[kind])
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "$schema": DRAFT,
        "$id": f"urn:{API_VERSION.replace('/', ':')}:{kind}",
        "title": kind,
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            "generatedAt": {"type": "string", "format": "date-time"},
            "version": {"type": "string"},
            "items": {"type": "array", "items": item},
            "errors": errors,
            "notes": texts,
            "problems": texts,
            "truncated": {"type": "boolean"},
            **dict(zip(extra, others, strict=False)),
        },
        "required": ["apiVersion", "kind", "generatedAt", "items", "errors"],
        "$defs": definitions,
    }


def _of_document(kind: str) -> Json:
    """Return the schema of what is no list."""
    (reference,), definitions = msgspec.json.schema_components([DOCUMENTS[kind]], ref_template=REF)
    if kind == "WatchItem":  # unset values are absent, as in lists
        for definition in definitions.values():
            _without_null(definition)
    name = f"urn:{API_VERSION.replace('/', ':')}:{kind}"
    return {"$schema": DRAFT, "$id": name, **reference, "$defs": definitions}


def _without_null(definition: Json) -> None:
    """Remove null from the members of an object: an unknown value is absent."""
    for name, member in definition.get("properties", {}).items():
        if member.get("default", 0) is None:
            others = [kind for kind in member.get("anyOf", ()) if kind != {"type": "null"}]
            del member["default"]
            if len(others) == 1:
                definition["properties"][name] = others[0]
            elif others:
                member["anyOf"] = others


def _status(name: str, status: type[msgspec.Struct], members: type[Item]) -> type:
    """Return the type of items that `cells.serve.items` makes of a status of the speaker."""
    from cells.serve.items import INTERNAL

    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [("node", str)]
    rename = {}
    more = msgspec.structs.fields(members)
    hidden = INTERNAL.union(field.name for field in more)
    for field in msgspec.structs.fields(status):
        if field.name in hidden:
            continue
        is_time = field.encode_name.endswith("Time")
        kind = datetime if is_time else field.type
        # Empty and unknown values are absent.
        required = field.required and _is_present(field.type)
        fields.append((field.name, kind) if required else (field.name, kind, None))
        rename[field.name] = field.encode_name
    for field in more:
        fields.append((field.name, field.type, None))
        rename[field.name] = field.encode_name
    name_of: Callable[[str], str] = lambda field: rename.get(field, field)  # noqa: E731
    return msgspec.defstruct(name, fields, rename=name_of, kw_only=True)


def _reading(peer: type) -> type:
    """Return the type of the item of ``waggle top``: what it reads at once, of these peers."""
    from cells.api import history, model

    members = {
        "node": str,
        "process": model.ProcessItem,
        "sessions": list[peer],  # type: ignore[valid-type]
        "changes": list[history.HistoryItem],
    }
    return msgspec.defstruct(
        "TopItem", [*members.items()], bases=(Item,), frozen=True, kw_only=True
    )


def _is_present(kind: object) -> bool:
    return type(None) not in getattr(kind, "__args__", ())
