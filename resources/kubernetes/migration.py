"""Objects that are stored in an old version of their kind, stored anew in the present one.

A CustomResourceDefinition remembers in ``status.storedVersions`` every version in which objects were
ever stored, and cannot lose one that is named there. What is written nowadays is stored in the
present version; so every object is written once as it is, and then the old names are taken away. The
API server does all of it: no object is read, changed or sent from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from resources.errors import ObjectName
from resources.kind import Kind
from resources.kubernetes.errors import KubernetesError, NotUnderstood, Refused
from resources.kubernetes.writer import Writer

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class NotStored(KubernetesError):  # noqa: N818  the name says what is wrong
    """Objects that the API server does not take as they are; the others have been written."""

    def __init__(self, failed: dict[ObjectName, KubernetesError]) -> None:
        name, error = min(failed.items(), key=lambda item: item[0])
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        super().__init__(f"{name} cannot be stored anew: {error}{more}")
        self.failed = failed


class NotOurs(KubernetesError):  # noqa: N818
    """Somebody else leads by now."""


class Migration(msgspec.Struct, frozen=True):
    """What came of it for one kind."""

    kind: str
    objects: int
    """How many were stored anew."""
    dropped: tuple[str, ...]
    """The versions that the definition does not name any more."""


class _Version(msgspec.Struct):
    name: str
    storage: bool


class _Specification(msgspec.Struct):
    versions: list[_Version]


class _Status(msgspec.Struct, rename="camel"):
    stored_versions: list[str] = []


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Definition(msgspec.Struct):
    metadata: _Metadata
    spec: _Specification
    status: _Status = msgspec.field(default_factory=_Status)


async def migrate(writer: Writer, kind: Kind[Any], allowed: Callable[[], bool]) -> Migration | None:
    """Bring a kind's stored objects to its first version; None where there is nothing to do.

    Nothing is done either for a kind that is not there, or that is still stored in an older version.
    ``allowed`` is asked before each write. Raises `KubernetesError`; it may then be called again.
    """
    path = f"{DEFINITIONS}/{kind.plural}.{kind.group}"
    present = kind.versions[0]
    definition = await _definition(writer, path)
    if definition is None:
        return None
    old = tuple(name for name in definition.status.stored_versions if name != present)
    storage = next((v.name for v in definition.spec.versions if v.storage), "")
    if not old or storage != present:
        return None
    objects = await _rewrite(writer, kind, allowed)
    _check(allowed)
    # With the version that was read: a definition that has been changed since is looked at again.
    await writer.merge(
        f"{path}/status",
        {
            "metadata": {"resourceVersion": definition.metadata.resource_version},
            "status": {"storedVersions": [present]},
        },
    )
    return Migration(kind.name, objects, old)


async def _definition(writer: Writer, path: str) -> _Definition | None:
    content = await writer.get(path)
    if content is None:
        return None
    try:
        return msgspec.convert(content, _Definition)
    except msgspec.ValidationError as error:
        raise NotUnderstood(f"sends a definition that is not understood: {error}") from None


async def _rewrite(writer: Writer, kind: Kind[Any], allowed: Callable[[], bool]) -> int:
    path = kind.path(kind.versions[0])
    names = await writer.names(path)
    failed: dict[ObjectName, KubernetesError] = {}
    for name in names:
        _check(allowed)
        try:
            await writer.merge(f"{path}/{name}", {})
        except Refused as error:
            # One that is gone is not stored in any version.
            if error.status in (401, 403, 429) or error.status >= 500:
                raise
            if error.status != 404:
                failed[ObjectName(kind.name, "", name)] = error
    if failed:
        raise NotStored(failed)
    return len(names)


def _check(allowed: Callable[[], bool]) -> None:
    if not allowed():
        raise NotOurs("somebody else leads")
