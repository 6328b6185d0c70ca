"""Errors of requests to an API server, as errors of the objects that are reconciled by them."""

from __future__ import annotations

from typing import Final

from reconcilers.target.reconciler import ReconcileError
from resources.kubernetes import KubernetesError, StatusError

LONGEST_RETRY_AFTER_SECONDS: Final = 300.0
"""The longest Retry-After of a server that is respected."""


class RequestError(ReconcileError):
    """A request that failed."""

    def __init__(self, what: str, reason: str, retry_after: float) -> None:
        """``what`` may be empty; ``str()`` is both."""
        super().__init__(f"{what}: {reason}" if what else reason, retry_after=retry_after)
        self.reason = reason


def reconcile_error(
    error: KubernetesError,
    what: str = "",
    reason: str = "",
    *,
    all_objects: bool = False,
    outdated: bool = False,
) -> RequestError:
    """Return the error of an object whose request failed; ``reason`` replaces that of the request."""
    retry_after = error.retry_after if isinstance(error, StatusError) else 0.0
    found = RequestError(what, reason or str(error), min(retry_after, LONGEST_RETRY_AFTER_SECONDS))
    found.all_objects, found.outdated = all_objects, outdated
    return found
