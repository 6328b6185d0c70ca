"""The tests of OVN-Kubernetes' dialect."""
