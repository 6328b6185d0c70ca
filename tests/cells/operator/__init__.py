"""Tests of the operator's cells against a scripted API server."""
