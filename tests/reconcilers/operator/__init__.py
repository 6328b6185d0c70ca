"""Tests of what the operator writes."""
