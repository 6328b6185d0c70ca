"""Compares two states of a node: the effect on instances, sessions, routes and the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeGuard, TypeVar

import msgspec

from reconcilers.intent_tables import Json
from reconcilers.plan.changes import (
    FieldChange,
    InstanceChange,
    KernelChange,
    NodePlan,
    RouteChange,
    RouteEffect,
    SessionChange,
    SessionEffect,
)
from reconcilers.plan.node_state import NodeState, PeerState
from resources.json_names import json_name
from speaker.api import InstanceConfig, PeerConfig, Secret
from speaker.engine.effect_of_change import Effect, effect_of, is_same_router
from speaker.nlri import Family

K = TypeVar("K")
V = TypeVar("V")
NOT_COMPARED: Final = frozenset({"origins", "prefix"})
"""Members of a route that no UPDATE carries, or that name it."""
_NAMES: Final = {
    "import_": "import",
    "allowas_in_origin": "allowASInOrigin",
    "allowas_in": "allowASIn",
    "minimum_ttl": "minimumTTL",
}
"""Fields whose names in JSON `json_name` does not return."""
_INTERNAL: Final = frozenset({"name", "route_set"})
"""Fields of a session that are names of this program's own: its routes are compared one by one."""


def node_plan(before: NodeState, after: NodeState) -> NodePlan:
    """Return the plan of a node: its changes from one state to another."""
    recreated = _recreated(before, after)
    routes = _Routes(before, after)
    return NodePlan(
        instances=tuple(_instances(before, after)),
        sessions=tuple(
            change
            for key, old, new in _pairs(before.peers, after.peers)
            if (change := _session(key, old, new, recreated.get(key[0], ()), routes)) is not None
        ),
        routes=tuple(
            change
            for key, old, new in _pairs(before.peers, after.peers)
            for change in routes.changes(key, old, new)
        ),
        kernel=tuple(_kernel(before.kernel, after.kernel)),
    )


def _pairs(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """Yield both values of each key, in the order of the keys."""
    keys: Any = before.keys() | after.keys()
    for key in sorted(keys):
        yield key, before.get(key), after.get(key)


def _instances(before: NodeState, after: NodeState) -> Iterator[InstanceChange]:
    for name, old, new in _pairs(before.instances, after.instances):
        if old is None:
            yield InstanceChange(name=name, change="add")
        elif new is None:
            yield InstanceChange(name=name, change="remove")
        elif old != new:
            same = is_same_router(old, new)
            change = InstanceChange(
                name=name, change="update" if same else "recreate", fields=_fields(old, new)
            )
            yield change


def _recreated(before: NodeState, after: NodeState) -> dict[str, tuple[FieldChange, ...]]:
    """Return the changed fields of instances whose sessions all end."""
    return {
        name: tuple(
            msgspec.structs.replace(field, name=f"instance.{field.name}")
            for field in _fields(old, new)
        )
        for name, old, new in _pairs(before.instances, after.instances)
        if old is not None and new is not None and not is_same_router(old, new)
    }


def _session(
    key: tuple[str, str],
    old: PeerState | None,
    new: PeerState | None,
    of_instance: tuple[FieldChange, ...],
    routes: _Routes,
) -> SessionChange | None:
    """Return the change of a session; ``of_instance``: why all sessions of its instance end."""
    present = new or old
    assert present is not None  # noqa: S101 - one of both has the key
    change: SessionEffect
    fields: tuple[FieldChange, ...] = ()
    message = ""
    if old is None or new is None:
        change = "remove" if new is None else "add"
        message = "" if new is None else new.config.disabled_reason or ""
    else:
        fields = (*of_instance, *_fields(old.config, new.config))
        effect = effect_of(old.config, new.config)
        down = new.config.disabled_reason
        if effect == Effect.REPLACE:
            change = "replace"
        elif down is not None:
            if fields == ():
                return None
            change, message = ("stop" if old.config.disabled_reason is None else "update"), down
        elif old.config.disabled_reason is not None:
            change = "start"
        elif effect == Effect.RESET or of_instance:
            change = "reset"
        elif fields:
            change = "update"
        else:
            return None
    return SessionChange(
        instance=key[0],
        peer=key[1],
        address=present.config.address or present.config.interface,
        object=present.object,
        change=change,
        fields=fields,
        message=message,
        routes=len(routes.before(old) if new is None else routes.after(new)),
    )


class _Routes:
    """The routes of both states. Peers that share a route set share its comparison."""

    def __init__(self, before: NodeState, after: NodeState) -> None:
        self.before = before.sent_routes
        self.after = after.sent_routes
        self._compared: dict[Any, list[_Change]] = {}

    def changes(
        self, key: tuple[str, str], old: PeerState | None, new: PeerState | None
    ) -> Iterator[RouteChange]:
        """Yield the changes in a node's plan of the routes that a peer is sent."""
        known = (_sent_key(old), _sent_key(new))
        changes = self._compared.get(known)
        if changes is None:
            changes = list(_route_changes(self.before(old), self.after(new)))
            self._compared[known] = changes
        for change, prefix, fields, origins in changes:
            yield RouteChange(
                instance=key[0],
                peer=key[1],
                prefix=prefix,
                change=change,
                fields=fields,
                origins=origins,
            )


_Change = tuple[RouteEffect, str, tuple[FieldChange, ...], tuple[str, ...]]


def _sent_key(peer: PeerState | None) -> tuple[str | None, ...]:
    if peer is None:
        return ()
    config = peer.config
    return (config.route_set, config.next_hop_ipv4, config.next_hop_ipv6)


def _route_changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[_Change]:
    """Yield what changes, in the order of the state before, then new routes."""
    for prefix, old in before.items():
        new = after.get(prefix)
        if new is None:
            yield "withdraw", prefix, (), _origins(old)
        elif fields := _members(old, new):
            yield "update", prefix, fields, _origins(new)
    for prefix, new in after.items():
        if prefix not in before:
            yield "advertise", prefix, (), _origins(new)


def _origins(route: Json) -> tuple[str, ...]:
    refs = (
        "/".join(filter(None, (origin["kind"], origin["namespace"], origin["name"])))
        for origin in route["origins"]
    )
    return tuple(dict.fromkeys(refs))


def _kernel(before: Iterable[Json], after: Iterable[Json]) -> Iterator[KernelChange]:
    def by_key(routes: Iterable[Json]) -> dict[tuple[Any, ...], Json]:
        return {(route["table"], route["prefix"], route["metric"]): route for route in routes}

    old, new = by_key(before), by_key(after)
    for key in {**old, **new}:
        table, prefix, metric = key
        fields = _members(old[key], new[key]) if key in old and key in new else ()
        if key not in new:
            yield KernelChange(table=table, prefix=prefix, metric=metric, change="remove")
        elif key not in old:
            yield KernelChange(table=table, prefix=prefix, metric=metric, change="install")
        elif fields:
            yield KernelChange(
                table=table, prefix=prefix, metric=metric, change="update", fields=fields
            )


def _members(before: Json, after: Json) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(name=name, before=before[name], after=after[name])
        for name in before
        if name not in NOT_COMPARED and before[name] != after[name]
    )


def _fields(
    before: PeerConfig | InstanceConfig, after: PeerConfig | InstanceConfig
) -> tuple[FieldChange, ...]:
    """Return the changed fields by the names that the local API has, with values as JSON."""
    return tuple(_changed(before, after, ""))


def _changed(before: msgspec.Struct, after: msgspec.Struct, path: str) -> Iterator[FieldChange]:
    """Yield the changed fields; of a value with fields of its own these: ``bfd.detectMultiplier``."""
    for name in before.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old == new or (not path and name in _INTERNAL):
            continue
        field = f"{path}{_json_name(name)}"
        if _has_fields(old) and type(old) is type(new):
            yield from _changed(old, new, f"{field}.")
        else:
            yield FieldChange(name=field, before=_value(old), after=_value(new))


def _json_name(name: str) -> str:
    return _NAMES.get(name) or json_name(name)


def _has_fields(value: object) -> TypeGuard[msgspec.Struct]:
    """True of a value that is not one word, as an address family is."""
    return isinstance(value, msgspec.Struct) and not isinstance(value, Family)


def _value(value: object) -> Any:  # noqa: ANN401
    """Return a value as JSON with the names of the local API; of a password only that there is one."""
    if isinstance(value, Secret):
        return "***"
    if isinstance(value, Family):
        return str(value)
    if isinstance(value, tuple):
        return [_value(part) for part in value]
    if isinstance(value, msgspec.Struct):
        fields = value.__struct_fields__
        return {_json_name(name): _value(getattr(value, name)) for name in fields}
    return msgspec.to_builtins(value)
