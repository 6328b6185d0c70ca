"""The tests of Antrea's kinds."""
