"""The Deployment of the operator, which owns what the operator keeps in its namespace.

The Lease, the webhook's Secret and the addresses of the cluster: the API server collects them with the
Deployment.
"""

from __future__ import annotations

from typing import Any

from cells.options import OperatorOptions
from resources.kubernetes import KubernetesError, Writer


class Owner:
    """The owner references of objects in the namespace of the Lease."""

    def __init__(self, options: OperatorOptions) -> None:
        self._name = options.deployment or ""
        self._path = f"/apis/apps/v1/namespaces/{options.lease_namespace}/deployments/{self._name}"
        self._uid = ""

    async def references(self, writer: Writer) -> list[dict[str, Any]]:
        """Return the references; none without a Deployment, or while it cannot be read."""
        if self._name and not self._uid:
            try:
                deployment = await writer.get(self._path) or {}
            except KubernetesError:
                return []
            self._uid = str((deployment.get("metadata") or {}).get("uid", ""))
        if not self._uid:
            return []
        owner = {"apiVersion": "apps/v1", "kind": "Deployment"}
        return [{**owner, "name": self._name, "uid": self._uid}]
