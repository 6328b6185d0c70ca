"""Where objects come from: an API server, manifests, the host; and the tables that they fill."""
