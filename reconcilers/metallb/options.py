"""The options of the MetalLB dialect: in an agent and in ``waggle render``, and in the operator."""

from __future__ import annotations

from typing import Annotated

from resources.option_declarations import Options, setting


class MetalLBOperatorOptions(Options, frozen=True):
    """Options of the operator."""

    namespace: Annotated[
        str,
        setting(
            "the namespace of MetalLB; its objects in other namespaces have no effect",
            flag="--metallb-namespace",
        ),
    ] = "metallb-system"


class MetalLBOptions(MetalLBOperatorOptions, frozen=True):
    """Options of the agent and of ``waggle render``."""

    load_balancer_class: Annotated[
        str,
        setting(
            "advertise the Services with this loadBalancerClass only; by default Services without one",
            flag="--metallb-class",
        ),
    ] = ""
    service_statuses: Annotated[
        bool,
        setting(
            "write a ServiceBGPStatus for each Service that the node advertises; if false, "
            "written statuses are removed",
            flag="--metallb-service-statuses",
        ),
    ] = True
    ignore_exclude_lb: Annotated[
        bool,
        setting(
            "advertise Services from nodes with the label "
            "node.kubernetes.io/exclude-from-external-load-balancers as well",
            flag="--ignore-exclude-lb",
        ),
    ] = False
