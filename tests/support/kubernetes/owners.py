"""Owner references as the garbage collector of a cluster reads them; no controller manager runs here.

That program is in the Go module of kube-apiserver, but takes 77 s of processor time and 93 MB more.

Its rules (kubernetes.io, "Owners and Dependents"): an owner is looked up by apiVersion, kind, name and
UID; that of a dependent in a namespace is in the same namespace or in none, that of a dependent in no
namespace in none. Any other reference is to an owner that is gone: the dependent is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.kubernetes.server import KubeApiServer

Object = dict[str, Any]


class Resource(NamedTuple):
    """A resource of the API server."""

    kind: str
    collection: str
    """The URL path of all of its objects."""
    namespaced: bool
    root: str
    plural: str

    def path(self, namespace: str, name: str) -> str:
        """Return the URL path of an object; one of a cluster is in no namespace."""
        place = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.root}{place}/{self.plural}/{name}"


def owned_objects(server: KubeApiServer, manager: str = "waggle") -> set[tuple[str, str]]:
    """Return the kinds of objects with owners, with the owners' kinds: of a writer's objects.

    Raises AssertionError for a reference by which the collector would delete the object.
    """
    found: set[tuple[str, str]] = set()
    known = {(one.root, one.kind): one for one in _resources(server)}
    for resource in known.values():
        for item in server.request("GET", resource.collection).body.get("items", ()):
            metadata = item["metadata"]
            writers = [one["manager"] for one in metadata.get("managedFields", ())]
            if not any(one.startswith(manager) for one in writers):
                continue
            for reference in metadata.get("ownerReferences", ()):
                version = reference["apiVersion"]
                root = f"/apis/{version}" if "/" in version else f"/api/{version}"
                owner = known.get((root, reference["kind"]))
                where = f"{resource.kind} {metadata['name']}: {reference}"
                assert owner is not None, f"{where}: the API server has no such kind"
                assert resource.namespaced or not owner.namespaced, (
                    f"{where}: the owner of an object in no namespace is in none"
                )
                path = owner.path(metadata.get("namespace", ""), reference["name"])
                answer = server.request("GET", path)
                assert answer.ok, f"{where}: there is no {path}"
                assert answer.body["metadata"]["uid"] == reference["uid"], f"{where}: another UID"
                found.add((resource.kind, owner.kind))
    return found


def _resources(server: KubeApiServer) -> Iterator[Resource]:
    """Iterate over all resources that can be listed, of each version."""
    roots = ["/api/v1"]
    for group in server.request("GET", "/apis").body["groups"]:
        roots += [f"/apis/{one['groupVersion']}" for one in group["versions"]]
    for root in roots:
        answer = server.request("GET", root)
        for one in answer.body.get("resources", ()) if answer.ok else ():
            if "list" in one["verbs"] and "/" not in one["name"]:
                path = f"{root}/{one['name']}"
                yield Resource(one["kind"], path, one["namespaced"], root, one["name"])
