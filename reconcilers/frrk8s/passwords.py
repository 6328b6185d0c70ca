"""Passwords of sessions in Secrets of the type ``kubernetes.io/basic-auth``. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from reconcilers.frrk8s.unit_parts import Compiled, NeighborPart
from reconcilers.model import PasswordRef
from resources.core import Secret
from resources.core.kinds import SECRET
from resources.passwords import password_error
from resources.secret_value import SecretValue

PASSWORD_KEY: Final = "password"  # noqa: S105  the key within a Secret
PASSWORD_TYPE: Final = "kubernetes.io/basic-auth"  # noqa: S105  the type of a Secret
Resolved: TypeAlias = SecretValue | str
"""The octets of a password, or the reason why there are none."""
Resolve: TypeAlias = Callable[[PasswordRef, SecretValue | None], Resolved]
"""Resolves the reference of a password; the value is that of a field of the object."""


def password_of(secret: Secret | None) -> SecretValue | str:
    """Return the password in a Secret for FRR-k8s (basic-auth), or the Secret's defect."""
    if secret is None:
        return f"does not exist, or may not be read ({SECRET.name} of type {PASSWORD_TYPE})"
    if secret.type != PASSWORD_TYPE:
        return f"is of type {secret.type[:64]}, and not {PASSWORD_TYPE}"
    value = secret.data.get(PASSWORD_KEY)
    if value is None:
        return f"has no key {PASSWORD_KEY}"
    reason = password_error(value.reveal()) if value.known else None
    return value if reason is None else f"cannot be used: {reason}"


def unresolved_passwords(compiled: Compiled, resolve: Resolve) -> list[tuple[NeighborPart, str]]:
    """Return FRRConfigurations' neighbours whose password is not in its Secret, with the reason."""
    missing = []
    for part in compiled.passwords:
        ref = part.session.password
        in_field = part.settings.password is not None
        reason = None if ref is None or in_field else resolve(ref, None)
        if isinstance(reason, str):
            missing.append((part, reason))
    return missing
