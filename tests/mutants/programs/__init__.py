"""On the path of programs that a recorded run starts (`tests.mutants.recorder`)."""
