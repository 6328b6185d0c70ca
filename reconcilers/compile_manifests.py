"""Compiles manifests to the intent once, without an agent: for `waggle` and tests."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from reconcilers.apply.passwords import Passwords
from reconcilers.dialect import Admission, Dialect, extended
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.explain import Explainer
from reconcilers.intent.missing_bfd import WITHOUT_BFD
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.render import document
from reconcilers.intent_tables import IntentTables, Json, problem_item
from reconcilers.kernel.offline import kernel_document
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.received_file import ReceivedRoutes
from reconcilers.operator import InProcessOperator, Planner
from reconcilers.plan import NodeState, node_state
from resources.core import kinds as core
from resources.enumeration import enumerate_some
from resources.errors import ObjectName
from resources.host import Host
from resources.host.kinds import NODE_NETWORK
from resources.kind import Kind, Kinds
from resources.manifests.load import Loaded, load
from resources.option_declarations import Options
from resources.row_updates import replace_all
from resources.tables import Tables
from statedb import Database

SHOWN_NAMES: Final = 10
"""Nodes of the manifests that are named where there is no such one."""


class OfflineSettings(msgspec.Struct, frozen=True):
    """The node and the options for which manifests are compiled."""

    node: str
    secrets_namespace: str = "kube-system"
    intent: IntentOptions = IntentOptions()
    dialects: Mapping[str, Options] = {}
    """The options of dialects by name; a dialect without any has its defaults."""
    fib: FibOptions = FibOptions()
    bfd: bool = True
    """Whether the agent runs BFD sessions."""


def kinds_of(dialects: Iterable[type[Dialect]]) -> Kinds:
    """Return all kinds that manifests are compiled of: of dialects, their operators, and Kubernetes."""
    groups: list[Sequence[Kind[Any]]] = [core.KINDS]
    groups += [(*dialect.kinds, *dialect.cluster_kinds) for dialect in dialects]
    return Kinds(*groups, (NODE_NETWORK,))


def store(db: Database, tables: Tables, loaded: Loaded) -> None:
    """Write the objects and problems of loaded manifests into empty tables, to be compiled."""
    for kind, event in loaded.replacements:
        table = tables.of(kind)
        with db.write(table) as txn:
            for row in event.objects:
                table.upsert(txn, row)
    with db.write(tables.source_problems) as txn:
        for problem in loaded.problems:
            tables.source_problems.upsert(txn, problem)


class UnknownNodeError(Exception):
    """A node that manifests do not have; ``str()`` is one sentence."""


def unknown_node(node: str, known: Collection[str]) -> str:
    """Return a sentence that manifests have no such Node to compile for, with the nearest names."""
    near = difflib.get_close_matches(node, sorted(known), SHOWN_NAMES)
    first = near if len(known) > SHOWN_NAMES else []
    names = list(dict.fromkeys([*first, *sorted(known)]))
    plural = "s" * (len(names) != 1)
    shown = enumerate_some(names, SHOWN_NAMES)
    return f"there is no Node {node}; the Node{plural}: {shown}"


class CompiledManifests:
    """The intent of one node, compiled from manifests."""

    def __init__(
        self, loaded: Loaded, dialects: Iterable[type[Dialect]], settings: OfflineSettings
    ) -> None:
        dialect_types = list(dialects)
        self.db = Database()
        self.settings = settings
        self.resources = Tables(self.db, kinds_of(dialect_types))
        self.intent = IntentTables(self.db)
        self._is_empty = loaded.is_empty
        store(self.db, self.resources, loaded)
        instances = [
            dialect(self.resources, settings.dialects.get(dialect.name, dialect.options_type()))
            for dialect in dialect_types
        ]
        self._dialects = instances
        self._installing = settings.fib.installing(instances)
        planner = Planner(
            self.db,
            instances,
            settings.secrets_namespace,
            stored=False,
            installing=self._installing,
        )
        self._operator = InProcessOperator(self.db, self.intent, planner)
        self._compiler = IntentCompiler(
            self.db,
            self.resources,
            self.intent,
            instances,
            settings.node,
            secrets_namespace=settings.secrets_namespace,
            options=settings.intent,
            operator_in_process=True,
            installing=self._installing,
            bfd_off="" if settings.bfd else WITHOUT_BFD,
        )
        self._passwords = Passwords(self.db, self.intent, self.resources)
        self._run()

    def _run(self) -> None:
        self._operator.run()
        self._compiler.run()

    def change(self, loaded: Loaded) -> None:
        """Compile other manifests in place of these, as an agent does that has read these before.

        What is kept of the state before stays: claims, the last valid version of an invalid object.
        """
        invalid = {kind.name_of(value) for kind, value, _ in loaded.rejected}
        for kind, event in loaded.replacements:
            table = self.resources.of(kind)
            valid = {row.key for row in event.objects}
            with self.db.write(table) as txn:
                rows = [
                    row
                    for row in table.all(txn)
                    if row.key not in valid
                    and ObjectName(kind.name, row.metadata.namespace, row.metadata.name) in invalid
                ]
                replace_all(txn, table, (*rows, *event.objects))
        with self.db.write(self.resources.source_problems) as txn:
            replace_all(txn, self.resources.source_problems, loaded.problems)
        self._is_empty = loaded.is_empty
        self._run()

    def state(self) -> NodeState:
        """Return the state of the node that these manifests are compiled to."""
        snapshot = self.db.snapshot()
        password_of = self._passwords.reader(snapshot)
        return node_state(snapshot, self.resources, self.intent, password_of, bfd=self.settings.bfd)

    def unknown_node(self) -> str:
        """Return a sentence if the compiled manifests have Nodes and not this one; else ``""``."""
        names = {row.metadata.name for row in self.resources.nodes.all(self.db.snapshot())}
        if self._is_empty:
            return f"there is no Node {self.settings.node}: there are no manifests"
        if not names or self.settings.node in names:
            return ""
        return unknown_node(self.settings.node, names)

    def document(self) -> Json:
        """Return the document of ``waggle render`` without the additions of dialects."""
        return document(self.db.snapshot(), self.settings.node, self.resources, self.intent)

    def rendered(self) -> list[Json]:
        """Return the objects that dialects add to ``generated`` of compiled manifests (`Rendering`)."""
        return list(self._compiler.rendered())

    def whole_document(self) -> Json:
        """Return the document of ``waggle render`` of compiled manifests."""
        whole = self.document()
        return whole | {"generated": [*whole["generated"], *self.rendered()]}

    def kernel(
        self,
        received: ReceivedRoutes,
        host: Host | None = None,
        unknown: set[str] | None = None,
    ) -> Json:
        """Return the kernel's routes for compiled manifests, if peers announced these routes.

        ``host`` is that of the node where the manifests do not describe it. With ``unknown`` names of
        no peer are added to it, and no error. Raises
        `reconcilers.kernel.received_file.InvalidReceivedFile`.
        """
        snapshot, options = self.db.snapshot(), self.settings.fib
        described = self.resources.node_networks.get(snapshot, ("", self.settings.node))
        return kernel_document(
            received,
            list(self.intent.instances.all(snapshot)),
            list(self.intent.peers.all(snapshot)),
            host if described is None else described.host,
            options,
            self._installing,
            self.intent.routes.all(snapshot),
            unknown,
        )

    def without_effect(self) -> list[Json]:
        """Return problems of compiled objects without effect (`Admission.without_effect`)."""
        snapshot = self.db.snapshot()
        return [
            problem_item(problem)
            for dialect, admission in extended(self._dialects, Admission)
            for problem in admission.without_effect(dialect, snapshot)
        ]

    def explainer(self) -> Explainer:
        """Return the explainer of the intent that these manifests are compiled to."""
        return self._compiler.explainer()


def compile_manifests(
    paths: Iterable[str],
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    stdin: BinaryIO | None = None,
) -> CompiledManifests:
    """Read manifests and compile them. Raises `resources.manifests.load.UnreadablePathError`."""
    return CompiledManifests(load(paths, kinds_of(dialects), stdin), dialects, settings)
