"""What the accounts of the manifests may do, on a real API server."""
