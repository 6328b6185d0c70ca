"""State of an agent: the database in memory, and the files for its next start."""
