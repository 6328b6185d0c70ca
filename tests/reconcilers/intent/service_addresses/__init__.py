"""The rules for the addresses of Services."""
