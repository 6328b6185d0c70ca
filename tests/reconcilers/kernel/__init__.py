"""Tests of routes in the kernel."""
