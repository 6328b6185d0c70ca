"""Errors of requests to an API server."""

from __future__ import annotations

from typing import ClassVar

from resources.errors import ResourceError


class KubernetesError(ResourceError):
    """Base of the errors of this package."""

    end_of_watch: ClassVar[str] = "rejected"
    """How a watch has ended, with this error (`resources.kubernetes.REASONS_OF_ENDS`)."""


class Unreachable(KubernetesError):  # noqa: N818  the name is the condition
    """No response: no connection, a broken connection, or a certificate that is not trusted."""

    end_of_watch = "unreachable"

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"cannot reach {server}: {reason}")
        self.server = server
        self.reason = reason


class Unconfigured(Unreachable):
    """No usable kubeconfig or service account: the address of the API server is unknown."""

    def __init__(self, access: str, reason: str) -> None:
        KubernetesError.__init__(self, f"cannot use {access}: {reason}")
        self.server = access
        self.reason = reason


class ReadTimeout(KubernetesError):  # noqa: N818
    """A response has been silent for longer than bookmarks take: the connection is half-open."""

    end_of_watch = "silent"


class StatusError(KubernetesError):
    """A response with an error: an HTTP status, or a Status object within a watch."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status}: {message}" if message else str(status))
        self.status = status
        self.message = message
        self.retry_after = retry_after
        """Retry-After of the server, in seconds."""


class Expired(KubernetesError):  # noqa: N818
    """The resource version is too old (410 Gone) or inconsistent: a new list is necessary."""

    end_of_watch = "expired"


class InvalidResponse(KubernetesError):  # noqa: N818
    """A response that is not one of the API: a proxy's HTML, a truncated document."""


class UnconfirmedList(KubernetesError):  # noqa: N818
    """A complete list from an older state; it is applied once a second list confirms it."""


class NotServed(KubernetesError):  # noqa: N818
    """The API server does not have the kind: its CustomResourceDefinition is not installed."""
