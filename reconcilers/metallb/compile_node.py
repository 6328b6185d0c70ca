"""Compiles MetalLB's objects of one node to what they feed to FRR-k8s. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reconcilers.dialect import NodeContext, NodeIntent
from reconcilers.metallb.feed import Checked, MetalLBFeed
from reconcilers.metallb.findings import Secrets, finding_slices
from reconcilers.metallb.generated import HOSTNAME, configuration_name, merging_options
from reconcilers.model import ObjectRef
from reconcilers.sliced_work import Pieces, Slices
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.metallb.kinds import CONFIGURATION
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

REPLACED: Final = (
    "ignored: MetalLB's speaker has generated it of objects that are compiled here; stop the speaker, "
    "and delete it"
)


def compile_node(
    dialect: MetalLBDialect, snapshot: Snapshot, context: NodeContext
) -> Slices[NodeIntent]:
    """Compile MetalLB's objects of a node to a feed for FRR-k8s, checked; routes come of Services."""
    objects = dialect.selected(snapshot, context.node).objects
    secrets: Secrets = None
    if dialect.reads_secrets:
        of_peers = {(p.metadata.namespace, p.spec.password_secret.name) for p in objects.peers}
        secrets = {key: dialect.tables.secrets.get(snapshot, key) for key in of_peers}.get
    namespace, pieces = dialect.options.namespace, Pieces()
    problems = yield from finding_slices(objects, secrets, namespace, pieces)
    if pieces.slices:
        yield
    checked = Checked(objects, tuple(problems), secrets, namespace)
    last = context.state.last_good if context.state is not None else None
    replaced = _replaced(dialect, snapshot, context)
    return NodeIntent(
        feed=MetalLBFeed(dialect.tables, dialect.of_node, context.node, checked, replaced, last)
    )


def _replaced(
    dialect: MetalLBDialect, snapshot: Snapshot, context: NodeContext
) -> dict[ObjectRef, str]:
    """Return what MetalLB's own speaker writes for the node: by its name, or its host name.

    It has no effect where MetalLB has any object; BGPPeers of other nodes are not known.
    """
    tables, own = dialect.tables, dialect.options.namespace
    if not any(True for kind in CONFIGURATION for _ in tables.in_namespace(snapshot, kind, own)):
        return {}
    # A node that is assumed for a check has the label alone.
    label = dialect.labels(snapshot, context.node).get(HOSTNAME)
    namespace = merging_options(context).namespace
    names = dict.fromkeys(configuration_name(text) for text in (context.node, label) if text)
    return {ObjectRef(FRR_CONFIGURATION.name, namespace, name): REPLACED for name in names}
