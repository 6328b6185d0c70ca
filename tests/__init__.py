"""Tests of Waggle; folders mirror the code."""
