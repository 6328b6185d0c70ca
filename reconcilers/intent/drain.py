"""Draining a node: its routes are withdrawn or deprefered before its Pods are evicted. Pure.

Off by default. A cordoned node has the taint `node.kubernetes.io/unschedulable`, which Kubernetes
adds shortly after ``spec.unschedulable``: either drains the node. Sessions stay
established, so that routers see a change of routes and not the loss of a peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from reconcilers.intent.options import IntentOptions
from reconcilers.model import GracefulShutdown, ObjectRef, Peer, SuppressedFamily
from resources.core import Node

CORDONED: Final = "node.kubernetes.io/unschedulable"
DRAINED: Final = "Drained"


def reason(node: Node | None, options: IntentOptions) -> str | None:
    """Return why a node is drained; None where it is not."""
    if options.drain == "off" or node is None:
        return None
    if node.spec.unschedulable and CORDONED in options.drain_taints:
        return "it is cordoned"
    for taint in node.spec.taints:
        if taint.key in options.drain_taints:
            return "it is cordoned" if taint.key == CORDONED else f"it has the taint {taint.key}"
    return None


def drained(peers: Iterable[Peer], why: str, node: str, options: IntentOptions) -> list[Peer]:
    """Return the peers of a drained node, their routes withdrawn or deprefered."""
    message = f"the node is drained: {why}"
    if options.drain == "withdraw":
        rule = ObjectRef("Node", "", node)
        return [
            replace(
                peer,
                route_set=None,
                suppressed=tuple(
                    SuppressedFamily(family, DRAINED, message, rule) for family in peer.families
                ),
            )
            for peer in peers
        ]
    shutdown = GracefulShutdown(message, options.drain_prepend)
    return [replace(peer, graceful_shutdown=shutdown) for peer in peers]


def describe(peers: Iterable[Peer]) -> str | None:
    """Return what draining does to the peers of a node, and why; None where it is not drained."""
    for peer in peers:
        if peer.graceful_shutdown is not None:
            return f"routes are advertised as a last resort, as {peer.graceful_shutdown.reason}"
        for family in peer.suppressed:
            if family.reason == DRAINED:
                return f"routes are withdrawn, as {family.message}"
    return None
