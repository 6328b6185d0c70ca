"""The kubernetes cell of an operator: all nodes and all BGP objects, and no Service."""

from __future__ import annotations

from dependency_injector import providers

from cells.hive import Cell
from cells.kubernetes import Kubernetes, KubernetesOptions, SourceContainer
from resources.kubernetes import of_cluster


class OperatorSourceContainer(SourceContainer):
    """The graph of the cell."""

    _reading = providers.Singleton(
        lambda secrets: of_cluster([secrets.name]), SourceContainer.secrets_namespace
    )
    kubernetes = providers.Singleton(
        Kubernetes,
        SourceContainer.database,
        SourceContainer.tables,
        SourceContainer.causes,
        _reading,
        SourceContainer.options,
        SourceContainer.metrics,
        SourceContainer.health,
        SourceContainer.lifecycle,
        SourceContainer.jobs,
    )
    invokes = providers.List(kubernetes)


CELL = Cell(
    name="kubernetes",
    description="The Kubernetes API server whose objects the operator reads.",
    container=OperatorSourceContainer,
    options=KubernetesOptions,
)
