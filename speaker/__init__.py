"""Speaker."""
