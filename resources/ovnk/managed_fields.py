"""Metadata with the field managers of an object: which programs have written it, and when."""

from __future__ import annotations

from resources.meta import ObjectMeta, Struct


class ManagedFieldsEntry(Struct, frozen=True):
    """metav1.ManagedFieldsEntry, without the fields themselves."""

    manager: str = ""
    time: str = ""
    subresource: str = ""


class ManagedMeta(ObjectMeta, frozen=True):
    """The fields of metav1.ObjectMeta that are used, and who manages the object's."""

    managed_fields: tuple[ManagedFieldsEntry, ...] = ()
