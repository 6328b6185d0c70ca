"""Tests of the hive."""
