"""The tests of Cilium's dialects."""
