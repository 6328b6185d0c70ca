"""Tests of the benches: that they measure what they say, and that their limits are held."""
