"""Why RouteAdvertisements are not accepted: a wrong configuration, or something that is missing.

Reasons and texts are as in OVN-Kubernetes' condition Accepted.
"""

from __future__ import annotations

from typing import ClassVar


class NotAccepted(Exception):  # noqa: N818  the name is the condition
    """RouteAdvertisements are not accepted; ``str()`` is the message of the condition."""

    reason: ClassVar[str]
    prefix: ClassVar[str]

    def __str__(self) -> str:
        """Return the message."""
        return f"{self.prefix}: {self.args[0]}"


class ConfigurationError(NotAccepted):
    """Something is wrong: what was generated stays, until it is right again."""

    reason = "ConfigurationError"
    prefix = "configuration error"


class ConfigurationPending(NotAccepted):
    """Something is missing: what was generated is withdrawn."""

    reason = "ConfigurationPending"
    prefix = "configuration pending"


class InternalError(NotAccepted):
    """A defect of the operator: what was generated stays."""

    reason = "InternalError"
    prefix = "internal error"
