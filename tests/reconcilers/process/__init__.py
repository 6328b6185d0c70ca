"""Tests of what processes beside the agent share."""
