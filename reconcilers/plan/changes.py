"""The changes of one node, as frozen values; ``waggle plan -o json`` prints them as they are."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

InstanceEffect = Literal["add", "remove", "recreate", "update"]
SessionEffect = Literal["add", "remove", "reset", "replace", "stop", "start", "update"]
RouteEffect = Literal["advertise", "withdraw", "update"]
KernelEffect = Literal["install", "remove", "update"]
ENDS_SESSION: Final = frozenset({"remove", "reset", "replace", "stop"})
"""Effects that end an established session."""


class _Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the values; members that are unset do not appear."""


class FieldChange(_Item, frozen=True, kw_only=True):
    """A changed field; null is a value that is not set."""

    name: str
    before: Any
    after: Any


class InstanceChange(_Item, frozen=True, kw_only=True):
    """A BGP instance: ``recreate`` ends all of its sessions."""

    name: str
    change: InstanceEffect
    fields: tuple[FieldChange, ...] = ()


class SessionChange(_Item, frozen=True, kw_only=True):
    """A session.

    ``reset``: it ends and is established again. ``replace``: another peer of the same name.
    ``stop`` and ``start``: its peer stays, and is or was kept down. ``update``: the session stays up.
    """

    instance: str
    peer: str
    address: str | None = None
    object: str | None = None
    """The first of the objects that configure it; of a generated one its owner."""
    change: SessionEffect
    fields: tuple[FieldChange, ...] = ()
    message: str = ""
    """Why the session ends or stays down, for people."""
    routes: int = 0
    """The number of routes that the peer is sent afterwards; of a removed one, was sent."""


class RouteChange(_Item, frozen=True, kw_only=True):
    """A route that one peer is sent, or no longer."""

    instance: str
    peer: str
    prefix: str
    change: RouteEffect
    fields: tuple[FieldChange, ...] = ()
    origins: tuple[str, ...] = ()
    """The objects that the route originates from; of a withdrawn route, originated from."""


class KernelChange(_Item, frozen=True, kw_only=True):
    """A received route in the kernel."""

    table: int
    prefix: str
    metric: int
    change: KernelEffect
    fields: tuple[FieldChange, ...] = ()


class NodePlan(_Item, frozen=True, kw_only=True):
    """The changes of one node; of none, if all are empty."""

    instances: tuple[InstanceChange, ...] = ()
    sessions: tuple[SessionChange, ...] = ()
    routes: tuple[RouteChange, ...] = ()
    kernel: tuple[KernelChange, ...] = ()

    def __bool__(self) -> bool:
        """True if anything changes."""
        return bool(self.instances or self.sessions or self.routes or self.kernel)
