"""Sources of objects, an API server, manifests, the host, and the tables that they fill."""
