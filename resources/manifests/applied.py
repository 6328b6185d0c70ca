"""Objects as they are once manifests are applied on top of present ones. Pure.

``kubectl apply`` removes the fields that the last applied manifest had and the new one has not, and
leaves what others have set: the status, the address of a Service, the labels that a kubelet sets. That
manifest is an annotation of the object. Without it (objects of Helm, or applied by the server) the
fields of the specification that no program of Kubernetes sets are taken from the new manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from resources.errors import INVALID_JSON
from resources.kind import Kind, Kinds

Json = Mapping[str, Any]
Identity = tuple[str, str, str]
"""Kind, namespace and name."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SET_BY_KUBERNETES: Final = frozenset(
    {
        "allocateLoadBalancerNodePorts",
        "clusterIP",
        "clusterIPs",
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "internalTrafficPolicy",
        "ipFamilies",
        "ipFamilyPolicy",
        "sessionAffinity",
        "type",
    }
)
"""Fields of a Service's specification that have values without a manifest."""
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label that an API server sets on each Namespace."""
APPLIERS: Final = ("kubectl", "helm", "argocd", "kustomize-controller", "flux", "pulumi")
"""How the names of the field managers begin that write manifests."""
_OF_NODES: Final = "Node"
"""The kind whose objects no manifest describes whole."""


class PresentObjects:
    """Objects as JSON, on top of which manifests are applied."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._objects: dict[Identity, Json] = {}

    def remember(self, value: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
        """Add an object on which manifests are applied, and yield it as it is."""
        known = self._identity(value)
        if known is not None:
            self._objects[known[1]] = value
        yield value

    def apply(self, value: Any) -> Iterator[Any]:  # noqa: ANN401  JSON
        """Yield an object as it is once its manifest is applied on top of the present one."""
        known = self._identity(value)
        present = None if known is None else self._objects.get(known[1])
        if known is None or present is None:
            yield value
            return
        merged = _three_way(_last_applied(known[0], present), present, value)
        if "status" in present:
            # A manifest writes no status.
            merged["status"] = present["status"]
        yield merged

    def _identity(self, value: Any) -> tuple[Kind[Any], Identity] | None:  # noqa: ANN401  JSON
        if not isinstance(value, dict) or not isinstance(value.get("metadata", {}), dict):
            return None
        kind = self._kinds.find(str(value.get("apiVersion")), str(value.get("kind")))
        if kind is None:
            return None
        name = kind.name_of(value)
        return kind, (name.kind, name.namespace, name.name)


def _last_applied(kind: Kind[Any], present: Json) -> Json:
    """Return the fields of an object that the manifest before has set."""
    metadata = present.get("metadata") or {}
    text = (metadata.get("annotations") or {}).get(LAST_APPLIED)
    if isinstance(text, str):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except INVALID_JSON:
            pass  # an annotation that anything may write
    if kind.name == _OF_NODES and not kind.custom:
        return {}
    kept = frozenset() if kind.custom else _SET_BY_KUBERNETES
    of_others = ("apiVersion", "kind", "metadata", "status")
    fields = {name: value for name, value in present.items() if name not in of_others}
    if isinstance(spec := fields.get("spec"), dict):
        fields["spec"] = {name: value for name, value in spec.items() if name not in kept}
    labels = metadata.get("labels") or {}
    labels = {name: value for name, value in labels.items() if name != _NAMESPACE_NAME}
    return {**fields, "metadata": {"labels": labels}}


def _three_way(last: Json, present: Json, value: Json) -> dict[str, Any]:
    """Return the present object with the fields of a manifest, without fields that only ``last`` has.

    Lists are replaced, as in custom resources.
    """
    merged = {name: field for name, field in present.items() if name in value or name not in last}
    for name, field in value.items():
        held = present.get(name)
        if isinstance(field, dict) and isinstance(held, dict):
            former = last.get(name)
            merged[name] = _three_way(former if isinstance(former, dict) else {}, held, field)
        else:
            merged[name] = field
    return merged


def without_absent(
    present: Iterable[dict[str, Any]], kinds: Kinds, named: Iterable[Identity]
) -> Iterator[dict[str, Any]]:
    """Yield the objects that stay once manifests are applied, and absent custom ones are deleted.

    Objects of Kubernetes itself stay, and generated objects.
    """
    known = set(named)
    for value in present:
        kind = kinds.find(str(value.get("apiVersion")), str(value.get("kind")))
        if kind is not None and kind.custom:
            name = kind.name_of(value)
            is_named = (name.kind, name.namespace, name.name) in known
            if not is_named and not _is_generated(value.get("metadata", {})):
                continue
        yield value


def _is_generated(metadata: Json) -> bool:
    """Return whether a program has made an object: by its owner, generated name or field managers.

    OVN-Kubernetes' FRRConfigurations have no owner, and such a name; MetalLB's speaker gives its
    objects neither. What a tool has applied is a manifest's: by ``kubectl apply``, by an apply of the
    server, or by one of `APPLIERS`. Without field managers an object is a manifest's.
    """
    if metadata.get("ownerReferences") or metadata.get("generateName"):
        return True
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        return False
    writers = [
        entry
        for entry in metadata.get("managedFields") or ()
        if isinstance(entry, dict) and not entry.get("subresource")
    ]
    return bool(writers) and not any(
        entry.get("operation") == "Apply" or str(entry.get("manager")).lower().startswith(APPLIERS)
        for entry in writers
    )
