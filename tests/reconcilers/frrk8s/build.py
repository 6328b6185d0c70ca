"""FRRConfigurations as units, and a merge of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from reconcilers.frrk8s.in_effect import ObjectsOfNode
from reconcilers.frrk8s.merge import Merge, Merger
from reconcilers.frrk8s.options import OnConflict
from reconcilers.frrk8s.passwords import Resolve, Resolved
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import ObjectRef, PasswordRef, SecretRef
from reconcilers.sliced_work import Pieces, finish
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.secret_value import SecretValue
from statedb import Database

NAMESPACE = "frr-k8s-system"
PEER = "203.0.113.9"


def configuration(name: str, spec: Any, created: str = "") -> dict[str, Any]:  # noqa: ANN401  JSON
    """Make an FRRConfiguration."""
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": created},
        "spec": spec,
    }


def unit(name: str, *routers: Mapping[str, Any], created: str = "", **bgp: object) -> Unit:
    """Make a unit of an FRRConfiguration with these routers."""
    value = configuration(name, {"bgp": {"routers": list(routers), **bgp}}, created)
    return Unit(ObjectRef("FRRConfiguration", NAMESPACE, name), FRR_CONFIGURATION.decode(value))


def router(*neighbors: Mapping[str, Any], asn: int = 64900, **more: object) -> dict[str, Any]:
    """Make a router."""
    return {"asn": asn, "neighbors": list(neighbors), **more}


def neighbor(**more: object) -> dict[str, Any]:
    """Make a neighbour with the address `PEER`."""
    return {"address": PEER, "asn": 64950, **more}


def resolve(**secrets: str) -> Resolve:
    """Resolve passwords; ``secrets`` are from Secrets."""

    def resolved(ref: PasswordRef, value: SecretValue | None) -> Resolved:
        if isinstance(ref, SecretRef):
            found = secrets.get(ref.name)
            return f"there is no {ref}" if found is None else SecretValue(found.encode())
        assert value is not None
        return value

    return resolved


def merge(units: Sequence[Unit], *, isolate: bool = False, **secrets: str) -> Merge:
    """Merge units; ``secrets`` are the passwords of Secrets."""
    return merge_by(Merger(), units, isolate=isolate, **secrets)


def merge_by(merger: Merger, units: Sequence[Unit], *, isolate: bool, **secrets: str) -> Merge:
    """Merge units by a merger that may have merged others."""
    mode: OnConflict = "isolate" if isolate else "keep"
    snapshot = Database().snapshot()
    given = ObjectsOfNode("n1", snapshot, mode, merger, resolve(**secrets), units)
    return finish(given.in_effect(Pieces())).merge


def reported(result: Merge) -> list[tuple[str, str, str]]:
    """Return category, names of objects and field of each problem."""
    return [
        (p.category, " ".join(ref.name for ref in p.objects), p.field.removeprefix("spec.bgp."))
        for p in result.problems
    ]
