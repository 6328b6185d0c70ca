"""Tests of the writer of kernel routes."""
