"""What a dialect is given for `Dialect.compile` and `Dialect.operate`, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

import msgspec

from reconcilers.model import (
    Condition,
    Generated,
    Instance,
    ObjectAnnotations,
    ObjectRef,
    Peer,
    Problem,
)
from resources.host.network import Host
from resources.option_declarations import Options
from statedb import Key


class Fed(msgspec.Struct, frozen=True):
    """An object of a dialect that feeds another one, translated to a row of a kind of that one."""

    origin: ObjectRef
    """The object; problems and routes name it, and not the translation."""
    row: Any
    """Of a kind of the dialect that is fed."""
    fields: Mapping[str, str] = {}
    """Paths in the row to paths in the object, both without indices; others are the object itself."""
    rules: Any = None
    """Rules of the feeding dialect for its own route sources (`RouteSetRules`); see the dialect that
    is fed for how its route sets carry them."""


class RouteSetRules(Protocol):
    """The rules of one route set, as a dialect's own value; the middle reads only its name.

    The name is unique within the dialect and changes with the rules, so that a changed rule is
    another set, which is filled before its peers move to it.
    """

    @property
    def name(self) -> str:
        """The name of the set within the dialect."""
        ...


class NodeIntent(msgspec.Struct, frozen=True):
    """What a dialect compiles for one node; ``dialect`` fields of the rows are filled in later."""

    instances: tuple[Instance, ...] = ()
    peers: tuple[Peer, ...] = ()
    route_sets: Mapping[str, Any] = {}
    """`RouteSetRules` by name."""
    conditions: tuple[Condition, ...] = ()
    problems: tuple[Problem, ...] = ()
    generated: tuple[Generated, ...] = ()
    annotations: tuple[ObjectAnnotations, ...] = ()
    """What the operator's part sets on objects of this node, for ``waggle render``."""
    fed: tuple[Fed, ...] = ()
    """For the dialect that this one feeds."""
    fed_last_good: tuple[Fed, ...] | None = None
    """What an earlier process fed in its last good state, until what this one feeds is in effect; None
    equals ``fed``."""
    uses_fed: bool = True
    """False while an earlier state is in effect in place of what feeding dialects have fed."""
    replaced: frozenset[ObjectRef] = frozenset()
    """Objects of the dialect that this one feeds which equal ``fed``: they do not count."""
    taken: frozenset[ObjectRef] | None = None
    """The objects of this dialect and of the one that it feeds that count, where they are isolated
    together; None where the other one decides."""
    recompiled: Mapping[str, frozenset[Key]] = {}
    """By route source: objects whose contributions the compilation has changed."""
    addresses: tuple[str, ...] = ()
    """Addresses that an object of the dialect has for the node, beside those of the Node."""


class ClusterAddresses(msgspec.Struct, frozen=True):
    """Addresses of the cluster that no Service may use, as text; what is none is left out."""

    nodes: frozenset[str] = frozenset()
    """Addresses of nodes, and those from which objects have their sessions opened."""
    pods: frozenset[str] = frozenset()
    """Prefixes of the Pods of nodes."""
    peers: frozenset[str] = frozenset()
    """Addresses of the peers of nodes."""
    services: frozenset[str] = frozenset()
    """Prefixes of cluster IPs."""


class NodeContext(msgspec.Struct, frozen=True):
    """What a dialect knows of the node for which it compiles."""

    node: str
    secrets_namespace: str = "kube-system"
    host: Host = Host()
    """Interfaces and default routes of the node."""
    operator_in_process: bool = False
    """True if the operator's part runs in this process: what it generates is in ``generated``, and
    conditions and problems that concern the whole cluster are reported by it alone."""
    generated: Mapping[tuple[str, str, str], Any] = {}
    """Objects as JSON that the operator's part has generated in this process, by kind, namespace
    and name."""
    fed: tuple[Fed, ...] = ()
    """The objects of dialects that feed this one."""
    fed_last_good: tuple[Fed, ...] = ()
    """Those of the last good state of an earlier process (`NodeIntent.fed_last_good`)."""
    replaced: frozenset[ObjectRef] = frozenset()
    """Own objects that do not count, as dialects that feed this one have equal ones."""
    taken: frozenset[ObjectRef] | None = None
    """The objects that count, of this dialect and of one that feeds it, where that one has isolated
    them together."""
    fed_options: Options | None = None
    """The options of the dialect that this one feeds."""
    for_operator: bool = False
    """True where the operator's part compiles what feeds another dialect, on every node in turn: no
    state is kept or used then."""


def _alone(node: str) -> NodeContext:
    return NodeContext(node, for_operator=True)


def _no_group(node: str) -> Hashable:  # noqa: ARG001
    return ()


class ClusterContext(msgspec.Struct, frozen=True):
    """What a dialect knows of the cluster for which its operator's part runs."""

    secrets_namespace: str = "kube-system"
    stored: bool = True
    """True if what is generated is stored in an API server and read back; False in a process that
    reads manifests, where it counts at once."""
    reports_conditions: bool = True
    """False where conditions are not read: a review of changes compares problems alone."""
    of_node: Callable[[str], NodeContext] = _alone
    """The context in which this dialect is compiled for a node, by the node's name: with what other
    dialects feed."""
    fed_options: Options | None = None
    """The options of the dialect that this one feeds."""
    feeding_group: Callable[[str], Hashable] = _no_group
    """Equal for nodes for which the feeding dialects have the same objects."""
    unread: frozenset[ObjectRef] = frozenset()
    """Single objects (Secrets) that could not be read: it is not known whether they exist."""


class Delete(msgspec.Struct, frozen=True):
    """Delete an object that the dialect generated earlier, if it still has this UID."""

    object: ObjectRef
    uid: str

    @property
    def key(self) -> tuple[ObjectRef, bool]:
        """The object, and that it is not its status."""
        return (self.object, False)


class ClusterIntent(msgspec.Struct, frozen=True):
    """What the operator's part of a dialect generates and reports."""

    generated: tuple[Generated, ...] = ()
    """All objects that have to exist, in an order in which they may be written."""
    outdated: frozenset[ObjectRef] = frozenset()
    """Those of ``generated`` that the API server lacks, or has differently."""
    deletions: tuple[Delete, ...] = ()
    annotations: tuple[ObjectAnnotations, ...] = ()
    """Annotations that the API server lacks, or has with other values."""
    conditions: tuple[Condition, ...] = ()
    reported: tuple[ObjectRef, ...] = ()
    """Objects whose managed conditions are ours, also where there is none to report."""
    problems: tuple[Problem, ...] = ()
