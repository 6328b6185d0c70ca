"""The host: interfaces and default routes."""
