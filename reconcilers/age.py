"""The age of objects: the oldest of several objects takes precedence. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from reconcilers.model import ObjectRef

Age = tuple[str, str, str, str]
"""Sorts before that of a younger object."""


def age(created: str, ref: ObjectRef) -> Age:
    """Return the age of an object by its creationTimestamp, of which an absent one is the oldest.

    Objects of one second are in the order of kind, namespace and name, so that all nodes, and the next
    process, decide alike.
    """
    return (in_utc(created), ref.kind, ref.namespace, ref.name)


def age_by_name(created: str, ref: ObjectRef) -> Age:
    """Return the age where objects of several kinds are one configuration: the kind comes last."""
    return (in_utc(created), ref.namespace, ref.name, ref.kind)


def in_utc(created: str) -> str:
    """Return a creationTimestamp in UTC, so that ages compare: a manifest may have an offset."""
    if not created or created.endswith("Z"):
        return created
    try:
        time = datetime.fromisoformat(created)
    except ValueError:
        return created
    in_utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return f"{in_utc:%Y-%m-%dT%H:%M:%SZ}"
