"""Tests of speaker.attribute."""
