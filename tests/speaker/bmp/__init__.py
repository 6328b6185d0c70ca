"""Tests of the BMP codec: values and octets, nothing of a speaker."""
