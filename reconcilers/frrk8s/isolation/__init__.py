"""Isolation of conflicting objects: ``--on-conflict=isolate``. Pure.

`order` accepts objects by their age. `isolated_objects` has the objects with their units, `references`
the references between them, and `joint_relations` the relations of objects of feeding dialects.
"""

from reconcilers.frrk8s.isolation.joint_relations import JointRelations
from reconcilers.frrk8s.isolation.order import Isolated, isolated

__all__ = ["Isolated", "JointRelations", "isolated"]
