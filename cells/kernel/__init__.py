"""Received routes in the kernel: best paths, host facts and sessions to the reconciler; its writer."""
