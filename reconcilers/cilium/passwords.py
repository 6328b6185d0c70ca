"""The passwords of sessions, of v1 and v2: a key of a Secret, without which a peer stays down. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconcilers.model import ObjectRef, Problem, SecretRef
from resources.core import Secret

PASSWORD: Final = "password"  # noqa: S105  the key within a Secret


def session_password(
    ref: ObjectRef,
    path: str,
    name: str | None,
    secrets: Mapping[str, Secret],
    namespace: str,
    problems: list[Problem],
) -> tuple[SecretRef | None, str | None]:
    """Return the Secret of a Cilium session's password, and why the peer has to stay down, or None.

    A session with a configured password never opens without it.
    """
    if name is None:
        return None, None
    password_ref = SecretRef(namespace, name)
    secret = secrets.get(name)
    reason = None
    if secret is None:
        reason = f"Secret {namespace}/{name} does not exist, or may not be read"
    elif not (PASSWORD in secret.data and secret.data[PASSWORD].reveal()):
        reason = f"no key {PASSWORD!r} in Secret {namespace}/{name}"
    if reason is not None:
        objects = (ref, ObjectRef("Secret", namespace, name))
        problem = Problem(objects, path, f"{reason}; its peers stay down")
        if problem not in problems:
            problems.append(problem)
    return password_ref, reason
