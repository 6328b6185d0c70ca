"""Recordings: written, read, replayed."""
