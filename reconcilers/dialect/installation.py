"""Needs of a dialect in the cluster: permissions, and no other implementation beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reconcilers.dialect.extension import Extension
from resources.kind import Kind
from resources.meta import ObjectKey
from statedb import Snapshot


class RbacRule(Extension, frozen=True):
    """A permission that does not follow from the dialect's kinds (RBAC PolicyRule)."""

    kinds: tuple[Kind[Any], ...]
    verbs: tuple[str, ...]
    operator: bool = False
    """True for the operator's role, False for the agent's."""
    option: str | None = None
    """The key of the option, in the configuration file, without which it is not needed."""
    value: str | None = None
    """The word that the option has to contain; None for any value."""


class OptionalKinds(Extension, frozen=True):
    """Kinds that a program reads with one of its options only, and is permitted to read then."""

    kinds: tuple[Kind[Any], ...]
    """They are among `Dialect.kinds`, or `Dialect.cluster_kinds`."""
    when: Callable[[Any], bool]
    """Options to whether the kinds are read."""
    option: str | None = None
    """The key of the option, in the configuration file, for the permission; None without one: manifests
    alone have the kinds."""
    value: str | None = None
    """The word that the option has to contain; None for any value."""
    operator: bool = False
    """True of the operator, False of agents."""
    of_all_nodes: tuple[Kind[Any], ...] = ()
    """Kinds of which agents then have the objects of other nodes, too (`NodeFilter.reduced`)."""


class SingleObject(Extension, frozen=True):
    """A single object of a kind without namespaces, which the operator may read."""

    kind: Kind[Any]
    """One of the `OptionalKinds` of the operator."""
    name: str


class DialectSecrets(Extension, frozen=True):
    """The Secrets that objects refer to: with the kind Secret in `Dialect.kinds`, no other is read.

    With the kind in `Dialect.cluster_kinds` the operator reads the metadata of Secrets in the programs'
    namespace.
    """

    referenced: Callable[[Any, Snapshot, str], Iterable[ObjectKey]]
    """Yields namespaces and names, given the dialect, a snapshot and the namespace of the programs,
    which is empty where no Secret may be read from it."""
    option: str | None = None
    """The option with the namespace of the dialect's own Secrets; None for that of the programs."""
    names: tuple[str, ...] = ()
    """The names of all of them, which alone are permitted; without any an administrator names them."""


class Companion(Extension, frozen=True):
    """Another program that the dialect relies on, and the versions of it that are tested."""

    name: str
    """For people: "MetalLB's controller"."""
    labels: tuple[str, ...]
    """Label selectors of its Deployment: it has one of them."""
    container: str
    """The name of the container whose image has the version."""
    tested: tuple[tuple[int, int], tuple[int, int]]
    """The first and the last version that is tested, each as major and minor number."""
    kinds: tuple[Kind[Any], ...] = ()
    """The kinds whose definitions are its: each has to be served in the version that is read."""


class Rival(Extension, frozen=True):
    """Another implementation of a dialect that may still run beside this one.

    Two speakers with one configuration open two sessions to each router. An object that exists is
    taken as proof that it runs: a DaemonSet with these labels, with pods that are ready.
    """

    name: str
    """For people: "MetalLB's speaker"."""
    labels: str
    """The label selector of its DaemonSet."""
    config_map: str | None = None
    """``namespace/name`` of a ConfigMap without whose entry it speaks no BGP."""
    config_entry: tuple[str, str] | None = None
    """Key and value of that entry."""
    config_paths: tuple[str, ...] = ()
    """For an entry that is a file in YAML: the paths in it that may have the value, such as
    ``featureGates.BGPPolicy``; the first that exists is used."""
