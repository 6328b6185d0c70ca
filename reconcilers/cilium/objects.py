"""The objects of v2: stored objects, and the translations of v1's policies.

Pure. A user's object precedes a translated one of the same name; a translated object that is stored in
the cluster has its policy as controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from reconcilers.cilium.v1.in_effect import PEERING_POLICY
from reconcilers.cilium.v1.translation import (
    ClusterView,
    as_object,
    merged,
    object_ref,
    translate,
)
from reconcilers.model import Generated, ObjectRef, Problem
from resources.cilium import (
    CiliumBGPAdvertisement,
    CiliumBGPClusterConfig,
    CiliumBGPNodeConfig,
    CiliumBGPNodeConfigOverride,
    CiliumBGPPeerConfig,
    CiliumBGPPeeringPolicy,
    kinds,
)
from resources.meta import OwnerReference, Resource
from resources.tables import Tables
from statedb import Snapshot

R = TypeVar("R", bound=Resource)


class Objects(NamedTuple):
    """The objects of v2, by name."""

    cluster_configs: dict[str, CiliumBGPClusterConfig]
    peer_configs: dict[str, CiliumBGPPeerConfig]
    advertisements: dict[str, CiliumBGPAdvertisement]
    overrides: dict[str, CiliumBGPNodeConfigOverride]
    node_configs: dict[str, CiliumBGPNodeConfig]


class TranslatedObjects(NamedTuple):
    """The objects that policies are translated to."""

    rows: dict[ObjectRef, Resource]
    """The objects, with their policy as controller."""
    origins: dict[ObjectRef, ObjectRef]
    """The policy of each object."""
    notes: list[Problem]

    @property
    def generated(self) -> list[Generated]:
        """The objects of v2 that v1's policies are translated to, as JSON, with their owners."""
        return [Generated(ref, self.origins[ref], as_object(row)) for ref, row in self.rows.items()]


def objects_of(tables: Tables, snapshot: Snapshot) -> Objects:
    """Return Cilium's objects of v2 in the tables."""
    return Objects(
        {row.metadata.name: row for row in tables.of(kinds.CLUSTER_CONFIG).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.PEER_CONFIG).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.ADVERTISEMENT).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.NODE_CONFIG_OVERRIDE).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.NODE_CONFIG).all(snapshot)},
    )


def controller_of(row: Resource, kind: str) -> OwnerReference | None:
    """Return an object's owner reference to its controller of a kind of Cilium's API, or None."""
    for owner in row.metadata.owner_references:
        group = owner.api_version.partition("/")[0]
        if owner.controller and owner.kind == kind and group == "cilium.io":
            return owner
    return None


def policy_translated_from(row: Resource) -> OwnerReference | None:
    """Return an object's owner reference to the v1 policy that it is a translation of, or None."""
    return controller_of(row, PEERING_POLICY)


def with_translated(
    objects: Objects, policies: Mapping[str, CiliumBGPPeeringPolicy], known: ClusterView
) -> tuple[Objects, TranslatedObjects]:
    """Return the objects of v2 together with the translations of v1's policies, and these alone."""
    translated = translate(policies.values(), known)
    rows = {
        object_ref(row): _controlled(row, policies[translated.origins[object_ref(row)].name])
        for row in translated.objects
    }
    overrides = _joined(objects.overrides, translated.overrides)
    for override in translated.overrides:
        stored = objects.overrides.get(override.metadata.name)
        if stored is not None and policy_translated_from(stored) is None:
            overrides[override.metadata.name] = merged(stored, override)
    united = objects._replace(
        cluster_configs=_joined(objects.cluster_configs, translated.cluster_configs),
        peer_configs=_joined(objects.peer_configs, translated.peer_configs),
        advertisements=_joined(objects.advertisements, translated.advertisements),
        overrides=overrides,
    )
    return united, TranslatedObjects(rows, translated.origins, translated.notes)


def _controlled(row: R, policy: CiliumBGPPeeringPolicy) -> R:
    owner = OwnerReference(
        api_version="cilium.io/v2alpha1",
        kind=PEERING_POLICY,
        name=policy.metadata.name,
        uid=policy.metadata.uid,
        controller=True,
    )
    return replace(row, metadata=replace(row.metadata, owner_references=(owner,)))


def _joined(stored: Mapping[str, R], translated: Iterable[R]) -> dict[str, R]:
    """Return the users' objects and the translated ones, which replace stored translations."""
    of_users = {name: row for name, row in stored.items() if policy_translated_from(row) is None}
    return {row.metadata.name: row for row in translated} | of_users
