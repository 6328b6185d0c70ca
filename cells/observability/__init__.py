"""What machines read of a program: logs, metrics, probes over HTTP, spans."""
