"""Tests of speaker.nlri."""
