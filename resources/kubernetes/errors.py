"""What can go wrong between here and an API server, as types; nothing is decided here."""

from __future__ import annotations

from resources.errors import ResourceError


class KubernetesError(ResourceError):
    """Base of the errors of this package."""


class Unreachable(KubernetesError):  # noqa: N818  the name says what is wrong
    """No answer: no configuration, no connection, a broken connection, a certificate not trusted."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"cannot reach {server}: {reason}")
        self.server = server
        self.reason = reason


class Unconfigured(Unreachable):
    """There is no usable configuration, so that it is not known where the API server is."""

    def __init__(self, access: str, reason: str) -> None:
        KubernetesError.__init__(self, f"cannot use {access}: {reason}")
        self.server = access
        self.reason = reason


class Silent(KubernetesError):  # noqa: N818
    """Nothing came on a watch for longer than bookmarks take: the connection is half open."""


class Refused(KubernetesError):  # noqa: N818
    """An answer with an error: an HTTP status, or a Status object within a watch."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status}: {message}" if message else str(status))
        self.status = status
        self.message = message
        self.retry_after = retry_after
        """Seconds that the server asks to wait at least."""


class Expired(KubernetesError):  # noqa: N818
    """The version is no longer known (410 Gone), or is not to be trusted: list again."""


class NotUnderstood(KubernetesError):  # noqa: N818
    """An answer that is not what the API says: HTML of a proxy, half a document."""


class Unconfirmed(KubernetesError):  # noqa: N818
    """A complete list that would take everything away; it counts when a second one says the same."""
