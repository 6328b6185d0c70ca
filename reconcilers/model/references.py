"""References: to objects of the cluster, and to what has a password."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from resources.kind import Kind
from resources.meta import Resource


class ObjectRef(msgspec.Struct, frozen=True, order=True):
    """Names one Kubernetes object; ``str()`` is ``Kind/namespace/name`` or ``Kind/name``."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``Kind/namespace/name`` or ``Kind/name``."""
        return "/".join(filter(None, (self.kind, self.namespace, self.name)))


def ref_to(kind: Kind[Any], row: Resource) -> ObjectRef:
    """Return the reference (`ObjectRef`) to the object of a row."""
    return ObjectRef(kind.name, *row.key)


class SecretRef(msgspec.Struct, frozen=True):
    """The key of a Secret that has a peer's TCP MD5 password; never the password itself."""

    namespace: str
    name: str
    key: str = "password"
    verbatim: bool = False
    """Whether a newline at the end of the value is a part of the password."""

    @property
    def owner(self) -> ObjectRef:
        """The Secret to which this reference of the model points."""
        return ObjectRef("Secret", self.namespace, self.name)

    def __str__(self) -> str:
        """Return the reference in the form of problems."""
        return f"Secret {self.namespace}/{self.name}"


class FieldRef(msgspec.Struct, frozen=True):
    """The field of an object that has a peer's TCP MD5 password; never the password itself.

    The row of the object has a `resources.secret_value.SecretValue` at the field.
    """

    object: ObjectRef
    field: str

    @property
    def owner(self) -> ObjectRef:
        """The object with the field to which this reference of the model points."""
        return self.object

    def __str__(self) -> str:
        """Return the reference in the form of problems."""
        return f"{self.field} of {self.object}"


PasswordRef: TypeAlias = SecretRef | FieldRef
