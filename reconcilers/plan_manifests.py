"""The plan between two sets of manifests: what each node would do, without an agent.

Each node is compiled with the manifests as they are, and again after the change, as an agent compiles
that has read the former ones: with claims, and with the last valid version of an invalid object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from reconcilers.check_manifests import UNNAMED_NODE
from reconcilers.compile_manifests import CompiledManifests, OfflineSettings, store
from reconcilers.dialect import Dialect, DialectSecrets
from reconcilers.kernel.received_file import InvalidReceivedFile, ReceivedRoutes
from reconcilers.plan import NodeState, Plan, masked, node_plan
from reconcilers.plan.kernel_inputs import KernelInputs
from resources.core import kinds as core
from resources.errors import ObjectName
from resources.kind import Kinds
from resources.manifests.load import NO_MANIFESTS, Loaded
from resources.meta import ObjectKey
from resources.source import Replace, SourceProblem
from resources.tables import Tables
from statedb import Database

PeerKey = tuple[str, str]
"""The names of an instance and of a peer."""


class UnreadableFileError(Exception):
    """A file of the new manifests that cannot be parsed: its objects are not known."""


def added(before: Loaded, after: Loaded) -> Loaded:
    """Return the manifests to plan for: the former with the new ones on top, as ``kubectl apply`` does.

    An invalid object leaves its former version in effect; an applied object has the problems
    of its new manifest.
    """
    rows = {kind.name: {row.key: row for row in e.objects} for kind, e in before.replacements}
    replacements = [
        (
            kind,
            Replace((*(rows.get(kind.name, {}) | {row.key: row for row in e.objects}).values(),)),
        )
        for kind, e in after.replacements
    ]
    given = {problem.object for problem in after.problems}
    for kind, event in after.replacements:
        given.update(ObjectName(kind.name, *row.key) for row in event.objects)
    problems = [problem for problem in before.problems if problem.object not in given]
    return after._replace(replacements=replacements, problems=(*problems, *after.problems))


def referenced_secrets(
    loaded: Loaded, dialects: Iterable[type[Dialect]], settings: OfflineSettings, kinds: Kinds
) -> Iterator[ObjectKey]:
    """Yield namespace and name of the Secrets that the manifests of a plan refer to."""
    db = Database()
    tables = Tables(db, kinds)
    store(db, tables, loaded)
    snapshot = db.snapshot()
    for dialect_type in dialects:
        options = settings.dialects.get(dialect_type.name, dialect_type.options_type())
        dialect = dialect_type(tables, options)
        for secrets in dialect.each(DialectSecrets):
            for namespace, name in secrets.referenced(
                dialect, snapshot, settings.secrets_namespace
            ):
                if name:
                    yield namespace, name


def plan_manifests(
    before: Loaded,
    after: Loaded,
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    nodes: Collection[str] = (),
    received: ReceivedRoutes | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Return the plan between two sets of manifests for these nodes, by default for all Nodes.

    Where neither has one, of a node without labels. With ``received`` also the routes that would stand
    in the kernel if the peers of the node announced these. ``progress`` is called before each node with
    the number of nodes that are done, and of all. Raises `UnreadableFileError`, and
    `reconcilers.kernel.received_file.InvalidReceivedFile`.
    """
    _reject_broken(after)
    plan = Plan()
    names = sorted(nodes or node_names(before, after)) or [UNNAMED_NODE]
    for done, node in enumerate(names):
        if progress is not None:
            progress(done, len(names))
        compiled = CompiledManifests(before, dialects, msgspec.structs.replace(settings, node=node))
        gone, new = set[str](), set[str]()
        present = _state(compiled, received, gone)
        compiled.change(after)
        changed = _state(compiled, received, new)
        _reject_unknown(gone & new)
        plan.add(node, present, changed, node_plan(present, changed))
    return plan


def plan_from_state(
    node: str,
    before: NodeState,
    after: Loaded,
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    changed_passwords: Callable[[Mapping[PeerKey, bytes]], Collection[PeerKey]],
    kernel: KernelInputs | None = None,
    received: ReceivedRoutes | None = None,
) -> Plan:
    """Return the plan of a node from the state of its agent to these manifests.

    The state has no passwords: ``changed_passwords`` returns the peers with changed passwords.
    With ``kernel`` and ``received`` also the routes in the kernel, if the peers announce these. Raises
    `UnreadableFileError`, and `reconcilers.kernel.received_file.InvalidReceivedFile`.
    """
    _reject_broken(after)
    settings = msgspec.structs.replace(settings, node=node)
    if kernel is not None:
        settings = msgspec.structs.replace(settings, fib=kernel.options)
    compiled = CompiledManifests(after, dialects, settings)
    state = compiled.state()
    if kernel is not None and received is not None:
        gone, new = set[str](), set[str]()
        present = kernel.kernel(before, received, gone)
        before = msgspec.structs.replace(before, kernel=tuple(present))
        changed_kernel = compiled.kernel(received, kernel.host, new)["kernel"]
        state = msgspec.structs.replace(state, kernel=tuple(changed_kernel))
        _reject_unknown(gone & new)
    passwords = {
        key: peer.config.password.reveal()
        for key, peer in state.peers.items()
        if peer.config.password is not None
        and key in before.peers
        and before.peers[key].config.password is not None
    }
    changed = masked(state, changed_passwords(passwords) if passwords else ())
    plan = Plan()
    plan.add(node, before, changed, node_plan(before, changed))
    return plan


def _reject_broken(loaded: Loaded) -> None:
    broken = next(filter(_hides_objects, loaded.problems), None)
    if broken is not None:
        raise UnreadableFileError(f"{broken.where}: {broken.message}")


def _hides_objects(problem: SourceProblem) -> bool:
    """True of a problem of a file, not of an object or of an empty directory."""
    return problem.object is None and not problem.ignored and problem.message != NO_MANIFESTS


def node_names(*manifests: Loaded) -> set[str]:
    """Return the names of all Nodes of the manifests of a plan."""
    return set(_names(manifests))


def _names(manifests: Iterable[Loaded]) -> Iterator[str]:
    for loaded in manifests:
        for kind, event in loaded.replacements:
            if kind is core.NODE:
                yield from (row.metadata.name for row in event.objects)


def _state(
    compiled: CompiledManifests, received: ReceivedRoutes | None, unknown: set[str]
) -> NodeState:
    """Return the state of a node; names of none of its peers are added to ``unknown``."""
    state = compiled.state()
    if received is None:
        return state
    kernel = compiled.kernel(received, unknown=unknown)["kernel"]
    return msgspec.structs.replace(state, kernel=tuple(kernel))


def _reject_unknown(names: Collection[str]) -> None:
    if names:
        raise InvalidReceivedFile(f"the node has no peer {min(names)}, before and after the change")
