"""Errors of requests to an API server, as errors of the objects that are reconciled by them."""

from __future__ import annotations

from typing import Final

from reconcilers.target.reconciler import ReconcileError
from resources.kubernetes import KubernetesError, StatusError

LONGEST_RETRY_AFTER_SECONDS: Final = 300.0
"""The longest Retry-After of a server that is respected."""


def reconcile_error(
    error: KubernetesError, text: str = "", *, all_objects: bool = False, outdated: bool = False
) -> ReconcileError:
    """Return the error of an object whose request failed; ``text`` replaces that of the request."""
    retry_after = error.retry_after if isinstance(error, StatusError) else 0.0
    return ReconcileError(
        text or str(error),
        retry_after=min(retry_after, LONGEST_RETRY_AFTER_SECONDS),
        all_objects=all_objects,
        outdated=outdated,
    )
