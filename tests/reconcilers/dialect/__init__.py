"""The protocol of dialects."""
