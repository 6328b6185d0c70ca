"""Where the password of a neighbour is: in the object itself, or in a Secret."""

from __future__ import annotations

import re
from typing import Final

from reconcilers.frrk8s.one_object.findings import Findings
from reconcilers.frrk8s.unit import NeighborKey, Unit
from reconcilers.model import FieldRef, PasswordRef, SecretRef
from resources.errors import shortened
from resources.frrk8s.neighbor import Neighbor
from resources.passwords import password_error

SECRETS_NAMESPACE: Final = "waggle.dev/secrets-namespace"
"""Annotation of an FRRConfiguration that ``waggle render`` generates: the namespace of the Secrets that
it refers to, where they are those of another dialect."""
MAX_SECRET_NAME: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""A DNS subdomain (RFC 1123)."""


def password(
    unit: Unit, spec: Neighbor, key: NeighborKey, path: str, findings: Findings
) -> PasswordRef | None:
    """Return where the password of a neighbour is."""
    secret = spec.password_secret.name
    if spec.password is None and not secret:
        return None
    field = f"{path}.password" if spec.password is not None else f"{path}.passwordSecret"
    if spec.password is not None and secret:
        text = f"{key} has both a password and the Secret {shortened(secret)}"
        findings.error(f"{path}.passwordSecret", text)
    if key.is_interface:
        text = f"{key}: a session by interface cannot have a password"
        findings.error(field, text)
    if secret and (len(secret) > MAX_SECRET_NAME or not _NAME.fullmatch(secret)):
        findings.error(
            f"{path}.passwordSecret.name",
            f"{key}: {shortened(secret)} cannot be the name of a Secret",
        )
    if spec.password is None:
        metadata = unit.row.metadata
        namespace = metadata.annotations.get(SECRETS_NAMESPACE, metadata.namespace)
        return SecretRef(namespace, secret)
    if spec.password.known:
        reason = password_error(spec.password.reveal())
        if reason is not None:
            findings.error(field, f"{key}: {reason}")
    return FieldRef(unit.ref, unit.path(f"{path}.password"))
