"""The state of a node as items of the local API, and read back from them.

Passwords are not transferred: of each only that there is one. The items are for a program of this or a
near version: a field that the reader does not know is ignored, and an absent one has its default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from reconcilers.intent.render import route_item
from reconcilers.intent_tables import KEY, IntentTables, Json
from reconcilers.plan.node_state import NodeState, PeerState, ProblemState
from speaker.api import InstanceConfig, PeerConfig, Secret
from statedb import Snapshot

ROUTES: Final = 100
"""Of one item."""
WITHHELD: Final = Secret("withheld")
"""In place of any password."""
CHANGED: Final = Secret("changed")
"""In place of a password that differs from the agent's."""


class _PeerItem(msgspec.Struct, frozen=True):
    instance: str
    object: str | None
    config: PeerConfig


def masked(state: NodeState, changed: Collection[tuple[str, str]] = ()) -> NodeState:
    """Return a state with one value in place of passwords, which are not transferred.

    The peers ``changed`` have another password.
    """
    return replace(
        state,
        peers={
            key: replace(
                peer,
                config=replace(peer.config, password=CHANGED if key in changed else WITHHELD),
            )
            if peer.config.password is not None
            else peer
            for key, peer in state.peers.items()
        },
    )


def state_items(snapshot: Snapshot, intent: IntentTables, state: NodeState) -> Iterator[list[Json]]:
    """Yield the state of a node as items to transfer by the local API, in slices."""
    yield [
        *({"instance": _plain(row)} for row in state.instances.values()),
        *(
            {"peer": _plain(_PeerItem(instance, peer.object, peer.config))}
            for (instance, _), peer in state.peers.items()
        ),
        *({"problem": _plain(row)} for row in state.problems),
    ]
    for route_set in state.route_sets:
        rows = iter(intent.routes.prefix(snapshot, KEY, (route_set,)))
        while routes := [route_item(row) for row in islice(rows, ROUTES)]:
            yield [{"routeSet": route_set, "routes": routes}]


def state_of(items: Iterable[Json]) -> NodeState:
    """Return the state of a node that was transferred as items. Raises `msgspec.ValidationError`."""
    instances: dict[str, InstanceConfig] = {}
    peers: dict[tuple[str, str], PeerState] = {}
    problems: list[ProblemState] = []
    route_sets: dict[str, dict[str, Json]] = {}
    for item in items:
        if "instance" in item:
            instance = msgspec.convert(item["instance"], InstanceConfig)
            instances[instance.name] = instance
        elif "peer" in item:
            peer = msgspec.convert(item["peer"], _PeerItem, dec_hook=_withheld)
            peers[peer.instance, peer.config.name] = PeerState(peer.config, peer.object)
        elif "problem" in item:
            problems.append(msgspec.convert(item["problem"], ProblemState))
        elif "routeSet" in item:
            routes = route_sets.setdefault(item["routeSet"], {})
            routes |= {route["prefix"]: route for route in item["routes"]}
    return NodeState(instances, peers, route_sets, tuple(problems))


def _plain(value: object) -> Any:  # noqa: ANN401
    return msgspec.to_builtins(value, enc_hook=_hide)


def _hide(value: object) -> bool:
    if not isinstance(value, Secret):
        raise NotImplementedError(type(value))
    return True


def _withheld(kind: type, value: object) -> Secret:
    del value
    if kind is not Secret:
        raise NotImplementedError(kind)
    return WITHHELD
