"""The kubernetes cell of an operator: the objects of all nodes, and no Service."""

from __future__ import annotations

from cells.hive import Group, Wiring, provide
from cells.observability.metrics import CertificateHolder, MetricsCollector
from cells.sources.api_server import Kubernetes, make_access, make_source
from cells.sources.referenced_secrets import ReferencedSecrets, SecretReaders
from reconcilers.dialect import Dialect, SingleObject, extended
from resources.core.kinds import NODE, SECRET, SERVICE_CIDR
from resources.kind import Kinds
from resources.kubernetes import Reading, of_cluster


def read_of_cluster(dialects: Group[Dialect]) -> Reading:
    """Return what an operator reads: the kinds of the operators' parts of enabled dialects."""
    kinds = Kinds(
        (NODE, SERVICE_CIDR),
        *(dialect.read(dialect.options, operator=True) for dialect in dialects),
    )
    single = {only.kind: only.name for _, only in extended(dialects, SingleObject)}
    return of_cluster(kinds, {kind: name for kind, name in single.items() if kind in kinds})


def secret_readers(dialects: Group[Dialect]) -> SecretReaders:
    """Return the dialects whose operator's part needs to know whether Secrets exist."""
    return SecretReaders(dialect for dialect in dialects if SECRET in dialect.cluster_kinds)


WIRING = Wiring(
    private=(make_access, read_of_cluster, secret_readers),
    provides=(make_source, Kubernetes),
    invokes=(Kubernetes, ReferencedSecrets),
    contributes=(
        provide(Kubernetes, as_=MetricsCollector),
        provide(Kubernetes, as_=CertificateHolder),
    ),
)
