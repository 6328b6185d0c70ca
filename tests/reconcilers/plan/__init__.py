"""Tests of `reconcilers.plan`."""
