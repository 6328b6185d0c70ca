"""Generated FRRConfigurations beside the stored ones: differences, and deletions.

An object is known by its namespace and its annotation, which names the RouteAdvertisements, the source
and the node; its name is kept. Names of new ones follow from these, so that none is created twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from reconcilers.model import Delete, Generated, ObjectRef
from reconcilers.ovnk.translation import OfSource
from resources.frrk8s.frrconfiguration import FRRConfiguration, FRRConfigurationSpec
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.ovnk.kinds import ROUTE_ADVERTISEMENTS
from resources.ovnk.networkattachmentdefinition import ROUTE_ADVERTISEMENTS as KEY
from resources.secret_value import encode_revealed

GENERATED_PREFIX: Final = "ovnk-generated-"
"""Before the names of generated FRRConfigurations."""
NAME_CHARACTERS: Final = 10
"""Of the digest in the name of a generated object."""


class StoredKey(NamedTuple):
    """Identifies a generated object."""

    namespace: str
    annotation: str


class Stored(NamedTuple):
    """The generated objects of the cluster."""

    objects: Mapping[StoredKey, FRRConfiguration]
    """That with the name of each key, or the first by name."""
    duplicates: tuple[FRRConfiguration, ...]
    """Further ones of a key."""
    by_advertisements: Mapping[str, frozenset[StoredKey]]
    """By the name of the RouteAdvertisements, which is their label."""


def is_generated(row: FRRConfiguration) -> bool:
    """True if a stored FRRConfiguration was generated of RouteAdvertisements."""
    metadata = row.metadata
    if metadata.name.startswith(GENERATED_PREFIX):
        return True
    generated = metadata.annotations.get(KEY)
    return bool(generated) and KEY in metadata.labels


def stored(rows: Iterable[FRRConfiguration]) -> Stored:
    """Return the stored FRRConfigurations that are generated: with label and annotation."""
    by_key: dict[StoredKey, FRRConfiguration] = {}
    duplicates: list[FRRConfiguration] = []
    names: dict[str, list[StoredKey]] = {}
    for row in rows:
        metadata = row.metadata
        annotation, label = metadata.annotations.get(KEY), metadata.labels.get(KEY)
        if not annotation or label is None:
            continue
        key = StoredKey(metadata.namespace, annotation)
        other = by_key.get(key)
        if other is None:
            by_key[key] = row
            names.setdefault(label, []).append(key)
        elif _rank(key, other) > _rank(key, row):
            by_key[key] = row
            duplicates.append(other)
        else:
            duplicates.append(row)
    by_name = {name: frozenset(keys) for name, keys in names.items()}
    duplicates.sort(key=lambda row: row.key)
    return Stored(by_key, tuple(duplicates), by_name)


def _rank(key: StoredKey, row: FRRConfiguration) -> tuple[bool, str]:
    """Order the stored objects of a key: an edited annotation may give an object the key of another."""
    name = row.metadata.name
    return name != generated_name(key), name


def deletion(row: FRRConfiguration) -> Delete:
    """Return the deletion of a stored FRRConfiguration that was generated."""
    return Delete(ObjectRef(FRR_CONFIGURATION.name, *row.key), row.metadata.uid)


def stored_key(name: str, configuration: OfSource) -> StoredKey:
    """Return the key of a generated FRRConfiguration among the stored objects."""
    return StoredKey(configuration.namespace, f"{name}/{configuration.source}/{configuration.node}")


def generated_name(key: StoredKey) -> str:
    """Return the name of a new FRRConfiguration: none is stored for its key."""
    digest = hashlib.sha256(f"{key.namespace}/{key.annotation}".encode()).hexdigest()
    return f"{GENERATED_PREFIX}{digest[:NAME_CHARACTERS]}"


def generated(
    name: str, key: StoredKey, spec: FRRConfigurationSpec, before: FRRConfiguration | None
) -> Generated:
    """Return an FRRConfiguration generated of RouteAdvertisements, with the stored one's name."""
    of_object = generated_name(key) if before is None else before.metadata.name
    return object_to_store(
        of_object,
        key.namespace,
        spec,
        ObjectRef(ROUTE_ADVERTISEMENTS.name, "", name),
        labels={KEY: name},
        annotations={KEY: key.annotation},
    )


def object_to_store(
    name: str,
    namespace: str,
    spec: FRRConfigurationSpec,
    owner: ObjectRef,
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Generated:
    """Return a whole FRRConfiguration to store: with labels, annotations and owner."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": dict(labels)}
    if annotations:
        metadata["annotations"] = dict(annotations)
    content = {
        "apiVersion": FRR_CONFIGURATION.api_versions[0],
        "kind": FRR_CONFIGURATION.name,
        "metadata": metadata,
        "spec": {"nodeSelector": {}, **msgspec.json.decode(_ENCODER.encode(spec))},
    }
    return Generated(ObjectRef(FRR_CONFIGURATION.name, namespace, name), owner, content)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=encode_revealed)
