"""Tests of the local API."""
