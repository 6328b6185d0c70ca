"""The kernel as a target of reconcilers: the runner, the streams of best paths, a writer in memory."""
