"""Tests of the manifests source."""
