"""What an agent keeps: the database in memory, and the files for its next start."""
