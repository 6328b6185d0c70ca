"""Names of peers in requests: their own, their address, or that of the object that configures them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconcilers.model import Peer


def named_by_objects(peers: Iterable[Peer]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the peers, as instance and name, that an object's name stands for.

    Without names that are a peer's own.
    """
    rows = list(peers)
    by_object: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        for origin in dict.fromkeys(ref.name for ref in row.origins):
            by_object.setdefault(origin, []).append((row.instance, row.name))
    own = {name for row in rows for name in (row.name, row.address)}
    return {name: named for name, named in by_object.items() if name not in own}


def chosen_peer(
    peers: Iterable[Peer], peer: str | None, instance: str | None
) -> Callable[[str, str | None, str | None], bool]:
    """Return a test of peers by the names of a request: instance, name or address; None is any.

    The name of an object that configures one peer alone is a name of it, too: a BGPPeer's.
    """
    named = () if peer is None else named_by_objects(peers).get(peer, ())
    of_object = named[0] if len(named) == 1 else None

    def chosen(of: str, name: str | None, address: str | None) -> bool:
        if instance not in (None, of):
            return False
        return peer is None or peer in (name, address) or (of, name) == of_object

    return chosen
