"""Tests of the objects that an agent writes about its own node."""
