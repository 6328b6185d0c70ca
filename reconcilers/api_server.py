"""Objects that are reconciled with an API server: their paths, and the errors of their requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from reconcilers.model import ObjectRef
from reconcilers.target.reconciler import ObjectKey, ReconcileError
from resources.kind import Kind, Kinds
from resources.kubernetes import KubernetesError, StatusError

LONGEST_RETRY_AFTER_SECONDS: Final = 300.0
"""The longest Retry-After of a server that is respected."""


class GetApplyClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def get(self, path: str) -> dict[str, Any] | None:
        """Return an object of the API server, or None if it does not exist."""

    async def apply(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Apply fields of an object as the program's field manager."""


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
    """Return the error of an object whose request to the API server failed; ``reason`` replaces its."""
    retry_after = error.retry_after if isinstance(error, StatusError) else 0.0
    failed = RequestError(what, reason or str(error), min(retry_after, LONGEST_RETRY_AFTER_SECONDS))
    failed.all_objects, failed.outdated = all_objects, outdated
    return failed


def key_of(ref: ObjectRef) -> ObjectKey:
    """Return the key of an object that is reconciled with an API server: kind, namespace, name."""
    return (ref.kind, ref.namespace, ref.name)


def kind_of(kinds: Kinds, key: ObjectKey) -> Kind[Any]:
    """Return the kind of an object, by its key for the API server. Raises LookupError."""
    kind = kinds.named(key[0])
    if kind is None:
        raise LookupError(f"no table has {ObjectRef(*key)}")
    return kind


def path_of(kinds: Kinds, key: ObjectKey) -> str:
    """Return the URL path of an object on the API server, by its key. Raises LookupError."""
    _, namespace, name = key
    return kind_of(kinds, key).object_path(name, namespace)
