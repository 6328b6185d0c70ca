"""The age of objects: where one of several counts, it is the oldest. Pure."""

from __future__ import annotations

from reconcilers.model import ObjectRef

Age = tuple[str, str, str, str]
"""Sorts before that of a younger object."""


def age(created: str, ref: ObjectRef) -> Age:
    """Return the age of an object by its creationTimestamp, of which an absent one is the oldest.

    Objects of one second are in the order of kind, namespace and name, so that all nodes, and the next
    process, decide alike.
    """
    return (created, ref.kind, ref.namespace, ref.name)


def age_by_name(created: str, ref: ObjectRef) -> Age:
    """Return the age where objects of several kinds are one configuration: the kind comes last."""
    return (created, ref.namespace, ref.name, ref.kind)
