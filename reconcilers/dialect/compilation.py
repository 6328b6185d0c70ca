"""Contexts and results of `Dialect.compile` and `Operation.operate`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
from msgspec.structs import replace

from reconcilers.dialect.feed import Feed, Outcome
from reconcilers.model import (
    Condition,
    Delete,
    Generated,
    Instance,
    ObjectAnnotations,
    ObjectRef,
    Peer,
    Problem,
)
from reconcilers.sliced_work import Slices, at_once
from resources.host.network import Host, KernelTable
from resources.option_declarations import Options
from speaker.nlri import Family
from statedb import Key, Table


class NodeIntent(msgspec.Struct, frozen=True):
    """The compilation of a dialect for one node; ``dialect`` fields of the rows are filled in later."""

    instances: tuple[Instance, ...] = ()
    peers: tuple[Peer, ...] = ()
    route_sets: Mapping[str, Any] = {}
    """The rules of each route set, a dialect's own values, by their names.

    A name is unique within the dialect and changes with the rules, so that a changed rule is another
    set, which is filled before its peers move to it.
    """
    conditions: tuple[Condition, ...] = ()
    problems: tuple[Problem, ...] = ()
    generated: tuple[Generated, ...] = ()
    annotations: tuple[ObjectAnnotations, ...] = ()
    """Annotations that the operator's part sets on objects of this node, for ``waggle render``."""
    feed: Feed | None = None
    """For the dialect that this one feeds."""
    outcomes: Mapping[str, Outcome] = {}
    """The outcome of each feed, by the name of the feeding dialect."""
    state: Any = None
    """The next compilation's `NodeContext.state`."""
    followed: tuple[Table[Any], ...] = ()
    """Tables that this compilation depends on, beside `Dialect.compiled_tables`."""
    recompiled: Mapping[str, Mapping[Key, AbstractSet[tuple[Family, bytes]] | None]] = {}
    """By route source: objects whose contributions the compilation has changed, with the prefixes if
    they are known (the source is a `reconcilers.dialect.PrefixSource` then)."""
    kernel_tables: frozenset[KernelTable] = frozenset()
    """Tables of the node's kernel whose routes it redistributes: `Host.routes` has them from the next
    compilation on."""
    addresses: tuple[str, ...] = ()
    """Addresses that an object of the dialect has for the node, beside the Node's."""

    def problems_of(self, dialect: str) -> Iterator[Problem]:
        """Yield the problems of any dialect's compilation, marked with it, and its feeders'."""
        outcomes = ((name, outcome.problems) for name, outcome in self.outcomes.items())
        for name, problems in ((dialect, self.problems), *outcomes):
            for problem in problems:
                yield replace(problem, dialect=name)


class ClusterAddresses(msgspec.Struct, frozen=True):
    """Addresses of the cluster that no Service may use, as text; other texts are ignored."""

    nodes: frozenset[str] = frozenset()
    """Addresses of nodes, and addresses from which objects have their sessions opened."""
    pods: frozenset[str] = frozenset()
    """Prefixes of the Pods of nodes."""
    peers: frozenset[str] = frozenset()
    """Addresses of the peers of nodes."""
    services: frozenset[str] = frozenset()
    """Prefixes of cluster IPs."""


class NodeContext(msgspec.Struct, frozen=True):
    """The node and its surroundings, for a dialect that compiles its intent."""

    node: str
    secrets_namespace: str = "kube-system"
    host: Host = Host()
    """Interfaces, default routes and redistributed routes of the node."""
    operator_in_process: bool = False
    """True if the operator's part runs in this process: what it generates is in ``generated``, and
    conditions and problems that concern the whole cluster are reported by it alone."""
    generated: Mapping[tuple[str, str, str], Any] = {}
    """Objects as JSON that the operator's part has generated in this process, by kind, namespace
    and name."""
    deleted: frozenset[ObjectRef] = frozenset()
    """Objects that the operator's part would delete, in this process."""
    feeds: Mapping[str, Feed] = {}
    """The feeds of other dialects to this one, by their names."""
    state: Any = None
    """The dialect's memory: `NodeIntent.state` of its last compilation, of a feeding one the last
    `Outcome`; at the start what `StoredState.restore` returns, or None."""
    merging_options: Options | None = None
    """The options of the dialect that this one feeds."""
    routes_installed: bool = False
    """True if routes that the dialect's peers announce are installed in the kernel."""
    for_operator: bool = False
    """True where the operator's part compiles what feeds another dialect, on every node in turn: there
    is no state then."""


def _alone(node: str) -> Slices[NodeContext]:
    return at_once(NodeContext(node, for_operator=True))


def _no_group(node: str) -> Hashable:  # noqa: ARG001
    return ()


class ClusterContext(msgspec.Struct, frozen=True):
    """The cluster, for a dialect whose operator's part runs."""

    secrets_namespace: str = "kube-system"
    stored: bool = True
    """True if what is generated is stored in an API server and read back; False in a process that
    reads manifests, where it is in effect at once."""
    reports_conditions: bool = True
    """False where conditions are not read: a review of changes compares problems alone."""
    of_node: Callable[[str], Slices[NodeContext]] = _alone
    """The context in which this dialect is compiled for a node, by the node's name: with what other
    dialects feed."""
    outcome: Any = None
    """The result that the operator's part of the fed dialect has returned for this one
    (`ClusterIntent.outcome`); None where it failed."""
    feeding_group: Callable[[str], Hashable] = _no_group
    """Equal for nodes for which the feeding dialects have the same objects."""
    state: Any = None
    """The dialect's memory: `ClusterIntent.state` of its last call, or None."""
    unread: frozenset[ObjectRef] = frozenset()
    """Single objects (Secrets) that could not be read: it is not known whether they exist."""


class ClusterIntent(msgspec.Struct, frozen=True):
    """Generated objects and reports of a dialect's operator's part."""

    generated: tuple[Generated, ...] = ()
    """All objects that have to exist, in an order in which they may be written."""
    outdated: frozenset[ObjectRef] = frozenset()
    """Objects of ``generated`` that the API server lacks, or has differently."""
    deletions: tuple[Delete, ...] = ()
    annotations: tuple[ObjectAnnotations, ...] = ()
    """Annotations that the API server lacks, or has with other values."""
    conditions: tuple[Condition, ...] = ()
    outcome: Any = None
    """The outcome of all feeds on all nodes: for the feeding dialects, a value of this one's own."""
    state: Any = None
    """The next call's `ClusterContext.state`."""
    problems: tuple[Problem, ...] = ()
    followed: tuple[Table[Any], ...] = ()
    """Further tables that it depends on, as `NodeIntent.followed`: where objects are not stored."""
