"""Conflicts between MetalLB's objects that are valid by themselves: each rule once. Pure.

A rule is an index of objects: isolation adds them one after another and asks with which of them another
one conflicts; a check adds all, and returns their problems. Source: MetalLB internal/config/config.go.
"""

from reconcilers.metallb.conflicts.facts import Facts, differing
from reconcilers.metallb.conflicts.preferences import PREFERENCE
from reconcilers.metallb.conflicts.rules import ObjectsBeside, conflicts

__all__ = ["PREFERENCE", "Facts", "ObjectsBeside", "conflicts", "differing"]
