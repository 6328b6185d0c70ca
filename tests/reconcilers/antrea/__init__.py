"""The tests of Antrea's dialect."""
