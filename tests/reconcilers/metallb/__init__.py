"""Tests of MetalLB's kinds."""
