"""Peers whose import policies name the default route."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from reconcilers.kernel.instance_routes import DEFAULT_ROUTE
from reconcilers.model import Peer
from speaker.api import BestPath
from speaker.nlri import Family, prefix_to_text

_DEFAULT_ROUTES: Final = frozenset({"0.0.0.0/0", "::/0"})


class DefaultRouteNames(msgspec.Struct, frozen=True):
    """Tests whether a rule of a peer's import policy names the default route."""

    naming: frozenset[tuple[str, str, str]]
    """Instance, peer and prefix of such rules."""
    everywhere: bool
    """True if each policy does."""

    def __call__(self, path: BestPath, family: Family) -> bool:
        """Return whether a rule by which a path was accepted names the default route."""
        key = (path.instance, path.peer or "", prefix_to_text(family, DEFAULT_ROUTE))
        return self.everywhere or key in self.naming


def default_route_names(peers: Iterable[Peer], *, everywhere: bool) -> DefaultRouteNames:
    """Return the test whether a peer's import policy names the default route."""
    naming = {
        (peer.instance, peer.name, rule.prefix)
        for peer in peers
        for rule in peer.accept or ()
        if rule.prefix in _DEFAULT_ROUTES
    }
    return DefaultRouteNames(frozenset(naming), everywhere)
