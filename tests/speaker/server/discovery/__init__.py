"""Neighbours of unnumbered peers."""
