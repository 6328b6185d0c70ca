"""Tests of the history cell."""
