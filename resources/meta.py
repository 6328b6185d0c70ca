"""The metadata of Kubernetes objects, and the base of all rows."""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

import msgspec
from msgspec.structs import force_setattr as share

from resources.crds.schema_markers import Rule
from resources.errors import FieldError
from resources.json_names import json_name
from resources.shared_texts import shared

ObjectKey: TypeAlias = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is empty."""


NO_TEXTS: Final[dict[str, str]] = {}
"""The labels or annotations of all objects that have none."""


class Struct(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, omit_defaults=True, gc=False
):
    """Base of all rows and their parts: frozen, and named in JSON as Kubernetes names it.

    What is decoded from JSON has no reference cycle: the collector has nothing to do with it.
    """

    cel: ClassVar[tuple[Rule, ...]] = ()
    """CEL validation rules of the struct."""


class OwnerReference(Struct, frozen=True):
    """metav1.OwnerReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    def __post_init__(self) -> None:
        """Share the texts with other objects."""
        share(self, "api_version", shared(self.api_version))
        share(self, "kind", shared(self.kind))
        share(self, "name", shared(self.name))


METADATA_FIELDS: Final = frozenset(
    (
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
"""All fields of metav1.ObjectMeta; `ObjectMeta` has the used fields."""


LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which ``kubectl apply`` keeps the object as it was applied."""


class ObjectMeta(Struct, frozen=True):
    """The fields of metav1.ObjectMeta that are used.

    The resource version is not among them: it changes with fields that no row has (heartbeats,
    conditions), and rows are compared to detect changes. The Kubernetes source tracks it.
    """

    name: str
    namespace: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    uid: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: tuple[OwnerReference, ...] = ()

    def __post_init__(self) -> None:
        """Drop kubectl's copy of the whole object: it repeats passwords, and is not used.

        Texts that many objects have are one object each.
        """
        self.annotations.pop(LAST_APPLIED, None)
        labels = {shared(name): shared(value) for name, value in self.labels.items()}
        share(self, "labels", labels or NO_TEXTS)
        share(self, "annotations", self.annotations or NO_TEXTS)
        share(self, "name", shared(self.name))
        share(self, "namespace", shared(self.namespace))
        share(self, "creation_timestamp", shared(self.creation_timestamp))

    @property
    def key(self) -> ObjectKey:
        """Namespace and name, of the metadata."""
        return (self.namespace, self.name)


class Resource(Struct, frozen=True):
    """Base of all rows."""

    metadata: ObjectMeta

    @property
    def key(self) -> ObjectKey:
        """Namespace and name, of the metadata of a row."""
        return (self.metadata.namespace, self.metadata.name)

    @property
    def broken_rules(self) -> tuple[FieldError, ...]:
        """The rules that a row of metadata and spec breaks; the base of all rows has none."""
        return ()
