"""Tests of the review of changes."""
