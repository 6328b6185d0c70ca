"""Errors of objects: object, field and broken rule."""

from __future__ import annotations

import msgspec


class FieldError(msgspec.Struct, frozen=True, order=True):
    """One field that breaks a rule; the path has Kubernetes' form: ``spec.peers[0].name``."""

    path: str
    message: str

    def __str__(self) -> str:
        """Return ``path: message``."""
        return f"{self.path}: {self.message}" if self.path else self.message


def shortened(text: str) -> str:
    """Return a text in quotes, cut after 64 characters, for messages."""
    return repr(text if len(text) <= 64 else text[:63] + "…")


def as_written(text: str) -> str:
    """Return a text without quotes where nothing in it could mislead, otherwise as `shortened`."""
    return text if len(text) <= 64 and text.isprintable() else shortened(text)


class ObjectName(msgspec.Struct, frozen=True, order=True):
    """Names one object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``Kind/namespace/name`` or ``Kind/name``."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class ResourceError(Exception):
    """Base of the errors of this package."""


class InvalidObject(ResourceError):  # noqa: N818  the name is the condition
    """An object that breaks rules, with every broken rule."""

    def __init__(self, object: ObjectName, errors: tuple[FieldError, ...]) -> None:  # noqa: A002
        super().__init__(f"{object}: " + "; ".join(str(error) for error in errors))
        self.object = object
        self.errors = errors
