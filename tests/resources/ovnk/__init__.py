"""The tests of OVN-Kubernetes' kinds."""
