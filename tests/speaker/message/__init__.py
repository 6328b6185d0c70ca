"""Tests of speaker.message."""
