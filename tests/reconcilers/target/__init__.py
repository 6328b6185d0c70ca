"""Tests of apply."""
