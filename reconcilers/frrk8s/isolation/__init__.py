"""Isolation of objects that do not go together: ``--on-conflict=isolate``. Pure.

`order` takes objects in by their age, `references` knows what refers to what, `relations` what another
dialect knows of its own.
"""

from reconcilers.frrk8s.isolation.order import Isolated, LeftOut, isolated
from reconcilers.frrk8s.isolation.relations import NO_RELATIONS, Beside, Relations

__all__ = ["NO_RELATIONS", "Beside", "Isolated", "LeftOut", "Relations", "isolated"]
