"""MetalLB's objects for tests, as JSON and as rows."""

from __future__ import annotations

from typing import Any

from reconcilers.metallb.objects import Objects
from resources.kind import Kind
from resources.metallb import kinds

NAMESPACE = "metallb-system"


def made(kind: Kind[Any], name: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make an object of MetalLB's namespace."""
    return {
        "apiVersion": f"{kind.group}/{kind.versions[0]}",
        "kind": kind.name,
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {} if spec is None else spec,
    }


def peer(name: str, address: str = "203.0.113.9", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a BGPPeer; ``created`` is its creationTimestamp, None takes a field away."""
    metadata = _created(spec)
    given = {"myASN": 64900, "peerASN": 64950, "peerAddress": address, **spec}
    kept = {key: value for key, value in given.items() if value is not None}
    return made(kinds.BGP_PEER, name, kept, **metadata)


def advertisement(name: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a BGPAdvertisement."""
    metadata = _created(spec)
    return made(kinds.BGP_ADVERTISEMENT, name, spec, **metadata)


def pool(name: str, *addresses: str, created: str = "", **labels: str) -> dict[str, Any]:
    """Make an IPAddressPool."""
    metadata = {"labels": labels, **({"creationTimestamp": created} if created else {})}
    return made(kinds.IP_ADDRESS_POOL, name, {"addresses": addresses}, **metadata)


def community(name: str, created: str = "", **values: str) -> dict[str, Any]:
    """Make a Community."""
    aliases = [{"name": alias, "value": value} for alias, value in values.items()]
    metadata = {"creationTimestamp": created} if created else {}
    return made(kinds.COMMUNITY, name, {"communities": aliases}, **metadata)


def profile(name: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a BFDProfile."""
    metadata = _created(spec)
    return made(kinds.BFD_PROFILE, name, spec, **metadata)


def _created(spec: dict[str, Any]) -> dict[str, Any]:
    created = spec.pop("created", None)
    return {} if created is None else {"creationTimestamp": created}


def rows(*objects: dict[str, Any]) -> Objects:
    """Decode objects."""
    found = (
        tuple(
            sorted(
                (kind.decode(value) for value in objects if value["kind"] == kind.name),
                key=lambda row: row.metadata.name,
            )
        )
        for kind in kinds.CONFIGURATION
    )
    return Objects(*found)
