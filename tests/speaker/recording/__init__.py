"""Tests of recordings: written by one engine, played by another."""
