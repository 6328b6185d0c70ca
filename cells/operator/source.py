"""The kubernetes cell of an operator: all nodes and all BGP objects, and no Service."""

from __future__ import annotations

from typing import Annotated

from dependency_injector import providers

from cells.hive import Cell, setting
from cells.kubernetes import KubernetesOptions, SourceContainer, source_of
from resources.kubernetes import of_cluster


class OperatorSourceOptions(KubernetesOptions, frozen=True):
    """Options of the cell."""

    translate_peering_policies: Annotated[
        bool,
        setting(
            "read CiliumBGPPeeringPolicies, and write the objects of v2 that stand for them",
            flag="--translate-peering-policies",
        ),
    ] = False


class Translation:
    """Whether v1's policies are translated."""

    def __init__(self, options: OperatorSourceOptions) -> None:
        self.on = options.translate_peering_policies


class OperatorSourceContainer(SourceContainer):
    """The graph of the cell."""

    options = providers.Dependency(instance_of=OperatorSourceOptions)
    translation = providers.Singleton(Translation, options)
    _reading = providers.Singleton(
        lambda secrets, translation: of_cluster(secrets.names, translate=translation.on),
        SourceContainer.secrets_namespace,
        translation,
    )
    kubernetes = source_of(_reading, options)
    invokes = providers.List(kubernetes)


CELL = Cell(
    name="kubernetes",
    description="The Kubernetes API server whose objects the operator reads.",
    container=OperatorSourceContainer,
    options=OperatorSourceOptions,
)
