"""The kubernetes cell of an operator: all nodes and all BGP objects, and no Service."""

from __future__ import annotations

from typing import Annotated

from cells.hive import Cell, provide, setting
from cells.kubernetes import Kubernetes, KubernetesOptions, make_access, make_source
from cells.metrics import MetricsCollector
from cells.resources import SecretsNamespace
from resources.kubernetes import Reading, of_cluster


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


def read_of_cluster(secrets_namespace: SecretsNamespace, translation: Translation) -> Reading:
    """Return what an operator reads: all nodes and all BGP objects."""
    return of_cluster(secrets_namespace.names, translate=translation.on)


CELL = Cell(
    name="kubernetes",
    description="The Kubernetes API server whose objects the operator reads.",
    options=OperatorSourceOptions,
    private=(make_access, read_of_cluster),
    provides=(Translation, make_source, Kubernetes),
    invokes=(Kubernetes,),
    contributes=(provide(Kubernetes, as_=MetricsCollector),),
)
