"""Tests of the Kubernetes source: the pure feed, and the loops against a scripted server."""
