"""Tests of recordings: recorded by one engine, replayed by another."""
