"""The objects of v2 that there are, and beside them those that v1's policies are translated to.

Pure. What somebody wrote goes before what is made; what was made before, and is written in the
cluster, names the policy that it is made of as its controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from reconcilers.cilium.v1.selection import PEERING_POLICY
from reconcilers.cilium.v1.translate import (
    Known,
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


class Made(NamedTuple):
    """What policies are translated to."""

    rows: dict[ObjectRef, Resource]
    """The objects, with the policy as their controller."""
    origins: dict[ObjectRef, ObjectRef]
    """The policy of each."""
    notes: list[Problem]

    @property
    def generated(self) -> list[Generated]:
        """The objects as they are written."""
        return [Generated(ref, self.origins[ref], as_object(row)) for ref, row in self.rows.items()]


def objects_of(tables: Tables, snapshot: Snapshot) -> Objects:
    """Return the objects of v2 that the tables have."""
    return Objects(
        {row.metadata.name: row for row in tables.of(kinds.CLUSTER_CONFIG).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.PEER_CONFIG).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.ADVERTISEMENT).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.NODE_CONFIG_OVERRIDE).all(snapshot)},
        {row.metadata.name: row for row in tables.of(kinds.NODE_CONFIG).all(snapshot)},
    )


def controlling_policy(row: Resource) -> OwnerReference | None:
    """Return the reference to the policy that an object was made of, or None."""
    for owner in row.metadata.owner_references:
        group = owner.api_version.partition("/")[0]
        if owner.controller and owner.kind == PEERING_POLICY and group == "cilium.io":
            return owner
    return None


def with_translated(
    objects: Objects, policies: Mapping[str, CiliumBGPPeeringPolicy], known: Known
) -> tuple[Objects, Made]:
    """Translate policies; the objects that count then, and what was made."""
    translated = translate(policies.values(), known)
    rows = {
        object_ref(row): _controlled(row, policies[translated.origins[object_ref(row)].name])
        for row in translated.objects
    }
    overrides = _joined(objects.overrides, translated.overrides)
    for override in translated.overrides:
        there = objects.overrides.get(override.metadata.name)
        if there is not None and controlling_policy(there) is None:
            overrides[override.metadata.name] = merged(there, override)
    counting = objects._replace(
        cluster_configs=_joined(objects.cluster_configs, translated.cluster_configs),
        peer_configs=_joined(objects.peer_configs, translated.peer_configs),
        advertisements=_joined(objects.advertisements, translated.advertisements),
        overrides=overrides,
    )
    return counting, Made(rows, translated.origins, translated.notes)


def _controlled(row: R, policy: CiliumBGPPeeringPolicy) -> R:
    owner = OwnerReference(
        api_version="cilium.io/v2alpha1",
        kind=PEERING_POLICY,
        name=policy.metadata.name,
        uid=policy.metadata.uid,
        controller=True,
    )
    return replace(row, metadata=replace(row.metadata, owner_references=(owner,)))


def _joined(there: Mapping[str, R], made: Iterable[R]) -> dict[str, R]:
    """Take what somebody wrote, and what is made now in place of what was made before."""
    written = {name: row for name, row in there.items() if controlling_policy(row) is None}
    return {row.metadata.name: row for row in made} | written
