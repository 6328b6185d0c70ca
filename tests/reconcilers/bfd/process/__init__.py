"""Tests of the process with the BFD sessions."""
