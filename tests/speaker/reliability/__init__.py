"""Hostile input, by its number in docs/reliability.md: what a peer may do, and what that may cost."""
