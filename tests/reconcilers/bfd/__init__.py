"""Tests of BFD for BGP peers."""
