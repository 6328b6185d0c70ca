"""FRR-k8s's BGP API as a dialect."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from reconcilers.dialect import (
    Candidate,
    Dialect,
    JoinConflictError,
    NodeContext,
    NodeIntent,
    Rival,
    RouteSource,
    Target,
)
from reconcilers.frrk8s.claims import Resolved
from reconcilers.frrk8s.intent import NodeValues, Rows, rows
from reconcilers.frrk8s.merge import Merge, MergedRouter, Merger
from reconcilers.frrk8s.options import Frrk8sClusterOptions, Frrk8sOptions
from reconcilers.frrk8s.route_sets import (
    SOURCE,
    ConfiguredPrefixes,
    RouteSet,
    candidates,
    changed_objects,
)
from reconcilers.frrk8s.selection import selected
from reconcilers.frrk8s.single import password_error
from reconcilers.frrk8s.unit import Unit
from reconcilers.intent.join import united
from reconcilers.model import Attributes, Contribution, PasswordRef, SecretRef, ref_to
from resources.core.kinds import NODE, SECRET
from resources.frrk8s.kinds import FRR_CONFIGURATION, KINDS
from resources.kind import Kind
from resources.secret_value import SecretValue
from resources.tables import Tables
from statedb import Snapshot, Table

PASSWORD: Final = "password"  # noqa: S105  the key within a Secret
SECRET_TYPE: Final = "kubernetes.io/basic-auth"  # noqa: S105  the type of a Secret


class Frrk8sDialect(Dialect):
    """FRR-k8s's BGP API."""

    name: ClassVar = "frrk8s"
    title: ClassVar = "FRR-k8s"
    kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, SECRET, *KINDS)
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, SECRET, *KINDS)
    options_type: ClassVar = Frrk8sOptions
    operator_options_type: ClassVar = Frrk8sClusterOptions
    rivals: ClassVar = (Rival("FRR-k8s", "app.kubernetes.io/name=frr-k8s"),)
    selecting_kinds: ClassVar = frozenset({FRR_CONFIGURATION.name})

    options: Frrk8sOptions | Frrk8sClusterOptions

    def __init__(self, tables: Tables, options: Frrk8sOptions | Frrk8sClusterOptions) -> None:
        super().__init__(tables, options)
        self._merger = Merger()
        self._prefixes = ConfiguredPrefixes()
        self._route_sets: Mapping[str, RouteSet] = {}
        self._routers: tuple[MergedRouter, ...] = ()
        """What is in force: with ``keep`` the last good state."""
        self.sources: tuple[RouteSource, ...] = (self._prefixes,)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of FRR-k8s's kinds, and Secrets."""
        return (*(self.tables.of(kind) for kind in KINDS), self.tables.secrets)

    def needs_host(self, snapshot: Snapshot, node: str) -> bool:  # noqa: ARG002
        """True if a source address is the name of an interface."""
        return any(
            _is_interface(neighbor.sourceaddress)
            for row in self.tables.of(FRR_CONFIGURATION).all(snapshot)
            for router in row.spec.bgp.routers
            for neighbor in router.neighbors
            if neighbor.sourceaddress
        )

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Merge the FRRConfigurations that select the node, and what other dialects feed."""
        node = self.tables.nodes.get(snapshot, ("", context.node))
        labels = node.metadata.labels if node is not None else {}
        stored = self.tables.of(FRR_CONFIGURATION).all(snapshot)
        found = selected(stored, labels, self.options.namespace)
        units = [*(Unit(ref_to(FRR_CONFIGURATION, row), row) for row in found.rows)]
        units += [Unit(fed.origin, fed.row, fed.field, fed.rules) for fed in context.fed]
        merged = self._merged(units, snapshot)
        self._merger.forget(units)
        if merged.routers is not None:
            self._routers = merged.routers
        elif self.options.on_conflict == "clear":
            self._routers = ()
        values = NodeValues(context.node, node, context.host, self._blocked)
        compiled = rows(self._routers, values)
        return NodeIntent(
            compiled.instances,
            compiled.peers,
            compiled.route_sets,
            problems=(*found.problems, *merged.problems, *compiled.problems),
            recompiled={SOURCE: self._recompiled(compiled)},
        )

    @property
    def _blocked(self) -> tuple[str, ...]:
        return self.options.blocked if isinstance(self.options, Frrk8sOptions) else ()

    def _merged(self, units: Sequence[Unit], snapshot: Snapshot) -> Merge:
        def resolve(ref: PasswordRef, value: SecretValue | None) -> Resolved:
            if isinstance(ref, SecretRef):
                return self._password(snapshot, ref)
            return "the password is missing" if value is None else value

        merge = (
            self._merger.isolate if self.options.on_conflict == "isolate" else self._merger.merge
        )
        return merge(units, resolve)

    def _password(self, snapshot: Snapshot, ref: SecretRef) -> Resolved:
        secret = self.tables.secrets.get(snapshot, (ref.namespace, ref.name))
        if secret is None:
            return f"there is no {ref}"
        if secret.type != SECRET_TYPE:
            return f"{ref} is of type {secret.type}, not {SECRET_TYPE}"
        value = secret.data.get(PASSWORD)
        if value is None:
            return f"{ref} has no key {PASSWORD!r}"
        reason = password_error(value.reveal()) if value.known else None
        return value if reason is None else f"{ref}: {reason}"

    def _recompiled(self, compiled: Rows) -> frozenset[Any]:
        """Return the objects that contribute other routes than before to sets that stay."""
        changed = changed_objects(self._route_sets, compiled.route_sets)
        self._route_sets = compiled.route_sets
        self._prefixes.objects = tuple(
            dict.fromkeys(ref for found in compiled.route_sets.values() for ref in found.exports)
        )
        return changed

    def join(self, contributions: Sequence[Contribution]) -> Attributes:
        """Unite communities; two local preferences contradict each other."""
        preferences = {
            one.attributes.local_preference
            for one in contributions
            if one.attributes.local_preference is not None
        }
        if len(preferences) > 1:
            found = " and ".join(map(str, sorted(preferences)))
            raise JoinConflictError("localPref", f"it has local preference {found}")
        return united(one.attributes for one in contributions)

    def candidates(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        context: NodeContext,  # noqa: ARG002
        rules: Mapping[str, Any],  # noqa: ARG002
        target: Target | None,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """Yield the prefixes of routers."""
        return candidates(self._routers)


def _is_interface(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return True
    return False
