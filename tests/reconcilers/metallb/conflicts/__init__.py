"""Rules of conflicts between MetalLB's objects."""
