"""Tests of FRR-k8s's kinds."""
