"""Fuzzing of the decoders and of whole sessions: targets, a corpus, and its replay as plain tests."""
