"""Tests of what agents report."""
