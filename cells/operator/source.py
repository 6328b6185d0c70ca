"""The kubernetes cell of an operator: the objects of all nodes, and no Service."""

from __future__ import annotations

from cells.hive import Group, Health, Wiring, provide
from cells.hive.jobs import Jobs
from cells.kubernetes import Kubernetes, make_access, make_source
from cells.metrics import MetricsCollector
from cells.referenced_secrets import follow_references
from cells.resources import SecretsNamespace
from reconcilers.dialect import Dialect
from resources.core.kinds import NODE
from resources.kind import Kinds
from resources.kubernetes import KubernetesSource, Reading, of_cluster
from resources.tables import Tables
from statedb import Database


def read_of_cluster(dialects: Group[Dialect]) -> Reading:
    """Return what an operator reads: the kinds of the operators' parts of enabled dialects."""
    kinds = Kinds((NODE,), *(dialect.read_by_operator() for dialect in dialects))
    return of_cluster(kinds)


class OperatorSecrets:
    """The Secrets to which the objects that an operator reads refer."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Group[Dialect],
        secrets_namespace: SecretsNamespace,
        source: KubernetesSource,
        health: Health,
        jobs: Jobs,
    ) -> None:
        follow_references(
            database,
            tables,
            dialects,
            Dialect.read_by_operator,
            secrets_namespace,
            source,
            health,
            jobs,
        )


WIRING = Wiring(
    private=(make_access, read_of_cluster),
    provides=(make_source, Kubernetes),
    invokes=(Kubernetes, OperatorSecrets),
    contributes=(provide(Kubernetes, as_=MetricsCollector),),
)
