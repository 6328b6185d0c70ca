"""The objects of a cluster as manifests, read with the rights of a kubeconfig.

For ``waggle plan --from-cluster``, and for the views of nodes without an answer.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from cells.api.pod_transport import ClusterLoop
from cells.api.transport import AgentError
from reconcilers.compile_manifests import OfflineSettings
from reconcilers.dialect import Dialect
from reconcilers.plan_manifests import referenced_secrets
from resources.core.kinds import NAMESPACE, NODE, SECRET, SERVICE_CIDR
from resources.host.kinds import NODE_NETWORK
from resources.kind import Kind, Kinds
from resources.kubernetes import Connection, KubernetesError, StatusError, Writer
from resources.kubernetes.discovery import Discovery
from resources.manifests.load import Loaded, load_objects
from resources.meta import ObjectKey
from waggle.fleet.agents import LIST_SECONDS, READER, read_version
from waggle.fleet.ask import in_cluster

PARALLEL: Final = 8
"""Lists that are read at once."""
SECONDS: Final = 120.0
"""Of all of them."""
WITHHELD: Final = base64.b64encode(b"withheld").decode()
"""In place of a password that may not be read."""
_KEY: Final = "password"
"""Of the Secrets of Cilium, FRR-k8s and MetalLB; Antrea's Secrets have a key for each peer."""


def kinds_to_read(
    dialects: Sequence[type[Dialect]], settings: OfflineSettings
) -> tuple[Kind[Any], ...]:
    """Return the kinds that agents and the operator read with these options, Secrets excepted."""
    kinds: dict[Kind[Any], None] = dict.fromkeys((NODE, NAMESPACE, SERVICE_CIDR))
    for dialect in dialects:
        options = settings.dialects.get(dialect.name, dialect.options_type())
        of_operator = (
            options
            if isinstance(options, dialect.operator_options_type)
            else dialect.operator_options_type()
        )
        kinds |= dict.fromkeys(dialect.read(options, operator=False))
        kinds |= dict.fromkeys(dialect.read(of_operator, operator=True))
    return tuple(kind for kind in kinds if kind not in (SECRET, NODE_NETWORK))


async def read_cluster(
    connection: Connection, kinds: Iterable[Kind[Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return all objects of kinds, each with its kind, and what is not known without others.

    Of a kind that is not installed there are none. Raises `AgentError` where one cannot be read:
    without it the plan would be that of another cluster.
    """
    notes: list[str] = []
    discovery = Discovery(connection, LIST_SECONDS)
    room = asyncio.Semaphore(PARALLEL)

    async def objects_of(kind: Kind[Any]) -> list[dict[str, Any]]:
        async with room:
            try:
                version, objects = await read_version(connection, discovery, kind)
            except AgentError as error:
                if error.code != "NotServed" and kind is not SERVICE_CIDR:
                    raise
                if error.code != "NotServed":
                    notes.append(f"the ranges of cluster IPs are not known: {error}")
                return []
        head = {"apiVersion": kind.api_version(version), "kind": kind.name}
        return [{**value, **head} for value in objects]

    lists = await asyncio.gather(*map(objects_of, kinds))
    return [value for objects in lists for value in objects], notes


async def read_secrets(
    connection: Connection, names: Iterable[ObjectKey]
) -> tuple[list[dict[str, Any]], list[ObjectKey]]:
    """Return these Secrets, and the names of the forbidden Secrets. Raises `AgentError`.

    A Secret that may not be read has one password wherever it is: that it changes is not known.
    """
    reader = Writer(connection, READER, silence=LIST_SECONDS)
    head = {"apiVersion": "v1", "kind": SECRET.name}
    secrets: list[dict[str, Any]] = []
    unread: list[ObjectKey] = []
    for namespace, name in names:
        try:
            value = await reader.get(SECRET.object_path(name, namespace))
        except StatusError as error:
            if error.status != 403:
                raise AgentError("ClusterUnreachable", str(error)) from error
            unread.append((namespace, name))
            value = {
                "metadata": {"namespace": namespace, "name": name},
                "type": "kubernetes.io/basic-auth",
                "data": {_KEY: WITHHELD},
            }
        except KubernetesError as error:
            raise AgentError("ClusterUnreachable", str(error)) from error
        if value is not None:
            secrets.append({**value, **head})
    return secrets, unread


class ClusterObjects(NamedTuple):
    """The objects of a cluster, Secrets excepted."""

    server: str
    objects: list[dict[str, Any]]
    notes: list[str]
    """The reasons why something of it is not known."""

    def loaded(self, kinds: Kinds, secrets: Iterable[dict[str, Any]] = ()) -> Loaded:
        """Return them as manifests, with these Secrets."""
        return load_objects([*self.objects, *secrets], f"the cluster {self.server}", kinds)


def objects_of(
    loop: ClusterLoop, dialects: Sequence[type[Dialect]], settings: OfflineSettings
) -> ClusterObjects:
    """Return what agents and the operator read of a cluster. Raises `AgentError`."""
    reading = read_cluster(loop.connection, kinds_to_read(dialects, settings))
    return ClusterObjects(loop.connection.server, *in_cluster(loop, reading, SECONDS))


def secrets_of(
    loop: ClusterLoop,
    manifests: Iterable[Loaded],
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    kinds: Kinds,
) -> tuple[list[dict[str, Any]], list[ObjectKey]]:
    """Return the Secrets that manifests refer to, as `read_secrets`. Raises `AgentError`."""
    of_manifests = (referenced_secrets(of, dialects, settings, kinds) for of in manifests)
    names = sorted(set(chain.from_iterable(of_manifests)))
    return in_cluster(loop, read_secrets(loop.connection, names), SECONDS)
