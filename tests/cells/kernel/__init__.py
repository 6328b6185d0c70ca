"""Tests of the kernel cell."""
