"""Tests of speaker.capability."""
