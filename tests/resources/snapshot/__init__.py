"""Tests of resources.snapshot, file by file."""
