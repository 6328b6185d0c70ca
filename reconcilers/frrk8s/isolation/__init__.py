"""Isolation of objects that do not go together: ``--on-conflict=isolate``. Pure.

`order` accepts objects by their age, `isolated_objects` are these with their units, `references`
knows what refers to what, `joint_relations` what feeding dialects know of their own.
"""

from reconcilers.frrk8s.isolation.joint_relations import JointRelations
from reconcilers.frrk8s.isolation.order import Isolated, LeftOut, isolated

__all__ = ["Isolated", "JointRelations", "LeftOut", "isolated"]
