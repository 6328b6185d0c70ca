"""Telemetry of a program: logs, metrics, probes over HTTP, spans."""
