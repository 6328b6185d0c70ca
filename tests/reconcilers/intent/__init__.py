"""Tests of intent."""
