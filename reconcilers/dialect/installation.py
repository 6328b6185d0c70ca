"""What a dialect needs of the cluster: permissions, and no other implementation beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from resources.kind import Kind


class RbacRule(msgspec.Struct, frozen=True):
    """A permission beyond those that follow from the dialect's kinds (RBAC PolicyRule)."""

    kinds: tuple[Kind[Any], ...]
    verbs: tuple[str, ...]
    operator: bool = False
    """True for the operator's role, False for the agent's."""
    option: str | None = None
    """The key of the option, in the configuration file, without which it is not needed."""
    value: str | None = None
    """The word that the option has to contain; None for any value."""


class NamedSecret(msgspec.Struct, frozen=True):
    """A Secret of a fixed name, in a namespace that an option names: permitted by its name alone."""

    name: str
    option: str = "namespace"
    """The field of the agent's options that has the namespace."""


class Companion(msgspec.Struct, frozen=True):
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


class Rival(msgspec.Struct, frozen=True):
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
    """Where the entry is a file in YAML: the paths in it that may have the value, such as
    ``featureGates.BGPPolicy``; the first that is there counts."""
