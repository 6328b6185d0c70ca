"""Which peers' import policies name the default route."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconcilers.kernel.wanted import DEFAULT_ROUTE, NamesDefaultRoute
from reconcilers.model import Peer
from speaker.api import BestPath
from speaker.nlri import Family, prefix_to_text

_DEFAULT_ROUTES: Final = frozenset({"0.0.0.0/0", "::/0"})


def default_route_names(peers: Iterable[Peer], *, everywhere: bool) -> NamesDefaultRoute:
    """Return a test of whether a rule of a peer's import policy names the default route.

    With ``everywhere`` each policy does.
    """
    naming = {
        (peer.instance, peer.name, rule.prefix)
        for peer in peers
        for rule in peer.accept or ()
        if rule.prefix in _DEFAULT_ROUTES
    }

    def names(path: BestPath, family: Family) -> bool:
        key = (path.instance, path.peer or "", prefix_to_text(family, DEFAULT_ROUTE))
        return everywhere or key in naming

    return names
