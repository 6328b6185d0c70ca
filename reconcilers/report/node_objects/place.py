"""The place of a node's objects of one kind, and their owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from reconcilers.dialect import NodeObjectKind
from reconcilers.report.node_objects.stored import JsonObject
from resources.core.node import Node
from resources.label_selectors import label_value


class Pod(msgspec.Struct, frozen=True):
    """The Pod of this agent; empty parts are not known."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


def owners(
    kind: NodeObjectKind, namespace: str, node: Node | None, pod: Pod
) -> tuple[JsonObject, ...]:
    """Return the owner of the node's objects of a kind: the agent's Pod or the Node.

    An owner in another namespace is taken as deleted, and the API server would collect the objects
    (Kubernetes documentation, "Owners and Dependents").
    """
    if kind.owned_by_pod and namespace and pod.namespace == namespace and pod.name and pod.uid:
        return ({"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid},)
    if node is None or not node.metadata.uid:
        return ()
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.metadata.name}
    return ({**owner, "uid": node.metadata.uid},)


class Place(msgspec.Struct, frozen=True):
    """The place of a node's objects of one kind, and their owner."""

    kind: NodeObjectKind
    node: str
    namespace: str = ""
    owners: Callable[[], tuple[JsonObject, ...]] = tuple
    """Returns the present owner references."""

    @property
    def path(self) -> str:
        """The URL path of the collection: the place of a node's objects."""
        kind = self.kind.kind
        return kind.path(kind.versions[0], self.namespace)

    @property
    def selector(self) -> tuple[str, str]:
        """The parameter of a list that selects the objects of the node in their place."""
        if self.kind.name:
            return ("fieldSelector", f"metadata.name={self.kind.name_for(self.node)}")
        return ("labelSelector", f"{self.kind.node_label}={self.label}")

    @property
    def label(self) -> str:
        """The value of the label with the node's name, in the objects' place."""
        return label_value(self.node)

    def content(self, labels: Mapping[str, str], owners: Sequence[JsonObject]) -> JsonObject:
        """Return a new object for its place, without its status."""
        kind = self.kind
        metadata: JsonObject = {"labels": dict(labels)} if labels else {}
        if kind.name:
            metadata["name"] = kind.name_for(self.node)
        else:
            metadata["generateName"] = kind.generated_name(self.node)
        if self.namespace:
            metadata["namespace"] = self.namespace
        if owners:
            metadata["ownerReferences"] = list(owners)
        return {
            "apiVersion": kind.kind.api_versions[0],
            "kind": kind.kind.name,
            "metadata": metadata,
        }
