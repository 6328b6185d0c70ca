"""Tests of `reconcilers.doctor`."""
