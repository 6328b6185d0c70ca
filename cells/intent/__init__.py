"""The cell that compiles objects to the neutral intent, and the gate of a missing configuration."""
