"""Tests of what monitoring stations are told, in virtual time and without sockets."""
