"""Tests of FRR-k8s's dialect."""
