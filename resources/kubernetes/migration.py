"""Storage version migration: rewrites objects that are stored in an old version of their kind.

A CustomResourceDefinition lists in ``status.storedVersions`` every version in which objects were ever
stored, and rejects the removal of a version from its spec while that is listed. An empty patch makes
the API server store an object in the storage version; after every object has been patched the old
versions are removed from the list. No content of an object is read or sent.

Source: Kubernetes documentation, "Versions in CustomResourceDefinitions", upgrade existing objects to
a new stored version.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple, final

import msgspec

from resources.crds.generate import defined
from resources.enumeration import first_of
from resources.errors import ObjectName
from resources.kind import Kind, Kinds
from resources.kubernetes.backoff import Backoff
from resources.kubernetes.errors import InvalidResponse, KubernetesError, StatusError
from resources.kubernetes.writer import Writer

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PASS_INTERVAL_SECONDS: Final = 600.0
"""Between two passes over the definitions."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 512.0
"""Bounds of the pause after a pass with errors."""
JITTER: Final = 0.25
"""Fraction by which pauses are shortened at random."""


class NotStored(KubernetesError):  # noqa: N818  the name is the condition
    """The API server rejects some objects; all others have been rewritten."""

    def __init__(self, failed: dict[ObjectName, KubernetesError]) -> None:
        name, error = min(failed.items(), key=lambda item: item[0])
        super().__init__(first_of(f"{name} cannot be rewritten: {error}", len(failed)))
        self.failed = failed


class NotLeader(KubernetesError):  # noqa: N818
    """The leadership was lost during a migration."""


class Migration(msgspec.Struct, frozen=True):
    """The completed migration of one kind."""

    kind: str
    objects: int
    """Number of objects rewritten."""
    dropped: tuple[str, ...]
    """The versions removed from ``status.storedVersions``."""


class MigrationPass(NamedTuple):
    """The result of one pass over all kinds."""

    migrated: tuple[Migration, ...]
    errors: tuple[KubernetesError, ...]
    pause: float
    """Seconds until the next pass."""


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


def versioned_kinds(kinds: Kinds) -> tuple[Kind[Any], ...]:
    """Return the kinds to which storage version migration applies: of several versions."""
    return tuple(kind for kind in defined(kinds) if len(kind.versions) > 1)


@final
class Migrations:
    """Migrates all kinds in passes, as definitions may change while an operator runs."""

    def __init__(self, kinds: Kinds, rng: random.Random, allowed: Callable[[], bool]) -> None:
        """``allowed`` is called before each write."""
        self._kinds = versioned_kinds(kinds)
        self._rng = rng
        self._allowed = allowed
        self._backoff = Backoff(
            rng, first=FIRST_RETRY_SECONDS, longest=LONGEST_RETRY_SECONDS, jitter=JITTER
        )

    async def run_pass(self, writer: Writer) -> MigrationPass:
        """Migrate each kind once; an error of one kind does not stop the others."""
        migrated: list[Migration] = []
        errors: list[KubernetesError] = []
        for kind in self._kinds:
            try:
                migration = await migrate(writer, kind, self._allowed)
            except KubernetesError as error:
                errors.append(error)
            else:
                if migration is not None:
                    migrated.append(migration)
        if errors:
            pause = self._backoff.next()
        else:
            self._backoff.reset()
            pause = PASS_INTERVAL_SECONDS * self._rng.uniform(1.0 - JITTER, 1.0)
        return MigrationPass(tuple(migrated), tuple(errors), pause)


async def migrate(writer: Writer, kind: Kind[Any], allowed: Callable[[], bool]) -> Migration | None:
    """Migrate a kind's stored objects to its first version; None where nothing is to be done.

    A kind without a definition in the API server is skipped, as is a kind whose storage version is not
    its first. ``allowed`` is called before each write. Raises `KubernetesError`; a repeated call
    continues.
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
    # With the resource version that was read: a definition changed since then gives a conflict.
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
        raise InvalidResponse(f"sends a definition that is not understood: {error}") from None


async def _rewrite(writer: Writer, kind: Kind[Any], allowed: Callable[[], bool]) -> int:
    path = kind.path(kind.versions[0])
    names = await writer.names(path)
    failed: dict[ObjectName, KubernetesError] = {}
    for name in names:
        _check(allowed)
        try:
            await writer.merge(f"{path}/{name}", {})
        except StatusError as error:
            # A deleted object is stored in no version.
            if error.status in (401, 403, 429) or error.status >= 500:
                raise
            if error.status != 404:
                failed[ObjectName(kind.name, "", name)] = error
    if failed:
        raise NotStored(failed)
    return len(names)


def _check(allowed: Callable[[], bool]) -> None:
    if not allowed():
        raise NotLeader("another operator leads")
