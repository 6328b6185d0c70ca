"""The inputs of the kernel's routes on a running agent's node: settings, and received routes.

`waggle plan` computes the kernel's routes before and after a change from both.
`reconcilers.plan.transfer` has the items of the intent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

import msgspec
from msgspec.structs import replace

from reconcilers.intent_tables import Json
from reconcilers.kernel.offline import kernel_document
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.received_file import ReceivedRoute, ReceivedRoutes
from reconcilers.model import Attributes, Instance, Peer, Route
from reconcilers.plan.node_state import NodeState
from resources.host import Host
from speaker.nlri import prefix_to_wire

_NUMBER: Final = re.compile(r"\d+")


class _NodeItem(msgspec.Struct, frozen=True):
    options: FibOptions = FibOptions()
    installing: tuple[str, ...] = ()
    host: Host | None = None


_PeerItem: Final = msgspec.defstruct(
    "_PeerItem",
    [
        (field.name, field.type)
        if field.default is msgspec.NODEFAULT
        else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(Peer)
        if field.name not in ("password", "held_password")
    ],
)
"""A peer without its password."""


class KernelInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The instances and peers of a node, its interfaces, and the options of its agent."""

    options: FibOptions
    installing: tuple[str, ...] = ()
    """The dialects whose routes are installed."""
    host: Host | None = None
    instances: tuple[Instance, ...] = ()
    peers: tuple[Peer, ...] = ()

    def items(self) -> Iterator[Json]:
        """Yield the inputs of an agent's kernel routes as items of its API, without passwords."""
        host = None if self.host is None else replace(self.host, routes=())
        yield {"node": _plain(_NodeItem(self.options, self.installing, host))}
        for instance in self.instances:
            yield {"instance": _plain(instance)}
        for peer in self.peers:
            values = {name: getattr(peer, name) for name in _PeerItem.__struct_fields__}
            yield {"peer": _plain(values)}

    @classmethod
    def of_items(cls, items: Iterable[Json]) -> Self:
        """Return the inputs of kernel routes that items have. Raises `msgspec.ValidationError`."""
        node = _NodeItem()
        instances: list[Instance] = []
        peers: list[Peer] = []
        for item in items:
            if "node" in item:
                node = msgspec.convert(item["node"], _NodeItem)
            elif "instance" in item:
                instances.append(msgspec.convert(item["instance"], Instance))
            elif "peer" in item:
                peer = msgspec.convert(item["peer"], _PeerItem)
                peers.append(Peer(**msgspec.structs.asdict(peer)))
        return cls(
            options=node.options,
            installing=node.installing,
            host=node.host,
            instances=tuple(instances),
            peers=tuple(peers),
        )

    def kernel(self, state: NodeState, received: ReceivedRoutes, unknown: set[str]) -> list[Json]:
        """Return the kernel's routes for these inputs; names of no peer are added to ``unknown``.

        Raises `reconcilers.kernel.received_file.InvalidReceivedFile`.
        """
        own = (
            Route(name, *prefix_to_wire(prefix), Attributes(), ())
            for name, routes in state.route_sets.items()
            for prefix in routes
        )
        document = kernel_document(
            received,
            self.instances,
            self.peers,
            self.host,
            self.options,
            self.installing,
            own,
            unknown,
        )
        return list(document["kernel"])


def received_of(items: Iterable[Json]) -> ReceivedRoutes:
    """Return the received routes of an agent's peers from items of its API, as kernel inputs.

    Of an AS_SET each number is one AS. Raises `msgspec.ValidationError`.
    """
    received: dict[tuple[str, str], list[ReceivedRoute]] = {}
    for item in items:
        given: dict[str, Any] = {
            "prefix": item["prefix"],
            "nextHop": item.get("nextHop"),
            "asPath": [int(asn) for asn in _NUMBER.findall(item.get("asPath") or "")],
            "communities": item.get("communities", ()),
            "localPreference": item.get("localPreference"),
            "med": item.get("med"),
            "origin": item.get("origin") or "igp",
        }
        key = (item["instance"], item["peer"])
        received.setdefault(key, []).append(msgspec.convert(given, ReceivedRoute))
    return {key: tuple(routes) for key, routes in received.items()}


def _plain(value: object) -> Any:  # noqa: ANN401
    return msgspec.to_builtins(value)
