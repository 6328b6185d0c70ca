"""Tests of the report cell."""
