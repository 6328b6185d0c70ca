"""The cells that keep state."""
