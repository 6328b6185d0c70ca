"""Tests of one session: messages and timers."""
