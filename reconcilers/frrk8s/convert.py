"""FRRConfigurations of the proposal of FRR-k8s (v1alpha1), converted to ``v1beta1``. Pure.

JSON in, JSON and notes out; the result is validated by its kind like any other object. The proposal
names some fields in two ways, of which both are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reconcilers.dialect import Conversion, Notes
from reconcilers.frrk8s.options import Frrk8sOptions
from reconcilers.model import ObjectRef

Json = dict[str, Any]

DRAFT: Final = "frrk8s.metallb.io/v1alpha1"
PRESENT: Final = "frrk8s.metallb.io/v1beta1"
KIND: Final = "FRRConfiguration"
_SELECTOR: Final = frozenset({"matchLabels", "matchExpressions"})


def convert_draft(value: Mapping[str, Any], notes: Notes) -> list[Json] | None:
    """Convert an FRRConfiguration of the proposal (v1alpha1) to v1beta1; None for other objects."""
    if value.get("apiVersion") != DRAFT or value.get("kind") != KIND:
        return None
    draft = _Draft(value, notes)
    spec = value.get("spec")
    converted = {
        **{key: item for key, item in value.items() if key != "status"},
        "apiVersion": PRESENT,
        "spec": draft.spec(spec) if isinstance(spec, Mapping) else spec,
    }
    return [converted]


class _Draft:
    """One object."""

    def __init__(self, value: Mapping[str, Any], notes: Notes) -> None:
        metadata = value.get("metadata")
        names = metadata if isinstance(metadata, Mapping) else {}
        namespace, name = (str(names.get(key) or "") for key in ("namespace", "name"))
        self._ref = ObjectRef(KIND, namespace or "default", name)
        self._notes = notes
        wanted = Frrk8sOptions().namespace
        if self._ref.namespace != wanted:
            self._note(
                "metadata.namespace",
                f"has an effect in {wanted} alone (--frrk8s-namespace): move the object there",
            )

    def _note(self, field: str, message: str) -> None:
        self._notes.add(self._ref, field, message)

    def spec(self, given: Mapping[str, Any]) -> Json:
        spec = dict(given)
        selector = spec.pop("nodeselector", None) or spec.get("nodeSelector")
        if isinstance(selector, Mapping):
            flat = not _SELECTOR & selector.keys()
            spec["nodeSelector"] = {"matchLabels": dict(selector)} if flat else dict(selector)
        if isinstance(spec.get("raw"), str):
            spec["raw"] = {"rawConfig": spec["raw"]}
        bgp = spec.get("bgp")
        if isinstance(bgp, Mapping) and isinstance(bgp.get("routers"), list):
            routers = [
                self._router(entry, f"spec.bgp.routers[{i}]")
                if isinstance(entry, Mapping)
                else entry
                for i, entry in enumerate(bgp["routers"])
            ]
            spec["bgp"] = {**bgp, "routers": routers}
        return spec

    def _router(self, given: Mapping[str, Any], path: str) -> Json:
        router = dict(given)
        prefixes = _joined(router, "prefixes", "prefixesIpV4", "prefixesIpV6")
        if prefixes is not None:
            router["prefixes"] = prefixes
        if isinstance(router.get("neighbors"), list):
            router["neighbors"] = [
                self._neighbor(entry, f"{path}.neighbors[{i}]")
                if isinstance(entry, Mapping)
                else entry
                for i, entry in enumerate(router["neighbors"])
            ]
        return router

    def _neighbor(self, given: Mapping[str, Any], path: str) -> Json:
        neighbor = dict(given)
        password = neighbor.get("password")
        if isinstance(password, Mapping):
            neighbor["passwordSecret"] = {"name": password.get("name", "")}
            del neighbor["password"]
            if password.get("namespace"):
                text = "has no effect: the Secret has to be in the namespace of FRR-k8s"
                self._note(f"{path}.password.namespace", text)
        for name, selectors in (("toAdvertise", False), ("toReceive", True)):
            part = neighbor.get(name)
            if isinstance(part, Mapping) and "allowed" in part:
                neighbor[name] = {**part, "allowed": _allowed(part["allowed"], selectors=selectors)}
        return neighbor


def _joined(value: Json, *names: str) -> list[Any] | None:
    """Take lists of several names out of an object; None without any of them."""
    lists = [value.pop(name) for name in names if isinstance(value.get(name), list)]
    return [item for entries in lists for item in entries] if lists else None


def _allowed(given: Any, *, selectors: bool) -> Any:  # noqa: ANN401  JSON
    """Return what is allowed: a bare list is its prefixes, ``allowAll`` the mode all."""
    allowed = {"prefixes": given} if isinstance(given, list) else given
    if not isinstance(allowed, Mapping):
        return allowed
    result = dict(allowed)
    if result.pop("allowAll", False) is True:
        result["mode"] = "all"
    prefixes = _joined(result, "prefixes", "prefixesIpV4", "prefixesIpV6")
    if prefixes is not None:
        result["prefixes"] = [
            {"prefix": prefix} if selectors and isinstance(prefix, str) else prefix
            for prefix in prefixes
        ]
    return result


TO_V1BETA1: Final = Conversion(drafts="draft of FRRConfiguration", draft=convert_draft)
