"""Conflicts between MetalLB's objects that are valid by themselves: each rule once. Pure.

A rule is an index of objects: isolation adds them one after another and looks up the objects in
conflict with a further one; a check adds all, and returns their problems. Source: MetalLB
internal/config/config.go.
"""

from reconcilers.metallb.conflicts.advertisements import PREFERENCE
from reconcilers.metallb.conflicts.all_conflicts import ObjectsBeside, conflicts
from reconcilers.metallb.conflicts.valid_objects import ValidObjects, differing_preferences

__all__ = ["PREFERENCE", "ObjectsBeside", "ValidObjects", "conflicts", "differing_preferences"]
