"""Isolation of MetalLB's objects: who refers to whom, and who disagrees with whom. Pure.

With ``--on-conflict=isolate`` they are taken in one order with the FRRConfigurations of the node
(`reconcilers.frrk8s.isolation`).
"""

from reconcilers.metallb.isolation.relations import MetalLBRelations

__all__ = ["MetalLBRelations"]
