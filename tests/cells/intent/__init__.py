"""The intent cell."""
