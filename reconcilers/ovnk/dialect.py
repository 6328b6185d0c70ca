"""OVN-Kubernetes' RouteAdvertisements as a dialect that feeds FRR-k8s."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from reconcilers.dialect import (
    ConditionMetric,
    Dialect,
    NodeContext,
    NodeIntent,
    OptionalKinds,
    RbacRule,
    SingleObject,
)
from reconcilers.ovnk import conditions
from reconcilers.ovnk.compat_metrics import COMPAT_METRICS, METRICS
from reconcilers.ovnk.compile_node import compile_node
from reconcilers.ovnk.operate import (
    DEFINITION_NAME,
    OPERATION,
    RouteAdvertisementsController,
)
from reconcilers.ovnk.options import OvnkOptions
from resources.core.kinds import DEFINITION, NAMESPACE, NODE
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.ovnk.kinds import (
    CLUSTER_NETWORK,
    KINDS,
    NETWORK_ATTACHMENT,
    POD,
    ROUTE_ADVERTISEMENTS,
    USER_NETWORK,
    VTEP,
)
from resources.tables import Tables
from statedb import Snapshot, Table

_OF_MANIFESTS: Final = (NAMESPACE, *KINDS, POD)
"""An agent of an API server reads none of them: FRR-k8s's dialect reads what is generated."""
_GENERATING: Final = (
    NAMESPACE,
    *(kind for kind in KINDS if kind is not USER_NETWORK),
    FRR_CONFIGURATION,
)
"""Kinds that RouteAdvertisements depend on: no network of a namespace can be advertised."""


def _generates(options: OvnkOptions) -> bool:
    return options.generates


class OvnkDialect(Dialect):
    """RouteAdvertisements of OVN-Kubernetes.

    An agent of an API server reads nothing of it: the FRRConfigurations have all that a node applies.
    """

    name: ClassVar = "ovnk"
    title: ClassVar = "OVN-Kubernetes"
    feeds: ClassVar = "frrk8s"
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, *_GENERATING, POD, DEFINITION)
    kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, *_OF_MANIFESTS)
    options_type: ClassVar = OvnkOptions
    installs_routes: ClassVar = True
    operator_options_type: ClassVar = OvnkOptions
    extensions: ClassVar = (
        OptionalKinds(_OF_MANIFESTS, when=lambda _: False),
        OptionalKinds(_GENERATING, when=_generates, option="mode", value="generate", operator=True),
        RbacRule(
            (NETWORK_ATTACHMENT,),
            ("get", "create", "patch"),
            operator=True,
            option="mode",
            value="generate",
        ),
        OptionalKinds(
            (POD,),
            when=lambda options: _generates(options) and options.dynamic_udn,
            option="dynamicUdn",
            operator=True,
        ),
        ConditionMetric(
            f"{METRICS}route_advertisement_condition",
            "RouteAdvertisements by condition: 1 for the present status.",
            ROUTE_ADVERTISEMENTS,
            conditions.ACCEPTED,
        ),
        ConditionMetric(
            f"{METRICS}cluster_user_defined_network_condition",
            "ClusterUserDefinedNetworks by condition: 1 for the present status.",
            CLUSTER_NETWORK,
            conditions.TRANSPORT_ACCEPTED,
        ),
        ConditionMetric(
            f"{METRICS}vtep_condition",
            "VTEPs by condition: 1 for the present status.",
            VTEP,
            conditions.ACCEPTED,
        ),
        COMPAT_METRICS,
        OptionalKinds(
            (DEFINITION,),
            when=lambda options: _generates(options) and options.evpn,
            option="evpn",
            operator=True,
        ),
        SingleObject(DEFINITION, DEFINITION_NAME),
        OPERATION,
    )

    options: OvnkOptions

    def __init__(self, tables: Tables, options: OvnkOptions) -> None:
        super().__init__(tables, options)
        self.controller = RouteAdvertisementsController(tables, options)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """No table: OVN-Kubernetes' dialect follows what the operator's part generates here."""
        return ()

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Feed FRR-k8s what OVN-Kubernetes' part of the operator has generated in this process."""
        return compile_node(self, snapshot, context)
