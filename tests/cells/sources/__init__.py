"""The cells of the sources."""
