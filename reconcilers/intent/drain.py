"""A node that is being emptied: its routes are taken back, or told as a last choice, before its Pods.

Pure. Nothing happens unless it is asked for. A cordoned node has the taint
`node.kubernetes.io/unschedulable`, which Kubernetes gives it a moment after ``spec.unschedulable``:
both count. Sessions stay up, so that other routers see a change of routes and not the loss of a peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from reconcilers.intent.options import IntentOptions
from reconcilers.model import LastChoice, ObjectRef, Peer, Silent
from resources.core import Node

CORDONED: Final = "node.kubernetes.io/unschedulable"
DRAINED: Final = "Drained"


def reason(node: Node | None, options: IntentOptions) -> str | None:
    """Say why a node is to be drained; None where it is not."""
    if options.drain == "off" or node is None:
        return None
    if node.spec.unschedulable and CORDONED in options.drain_taints:
        return "it is cordoned"
    for taint in node.spec.taints:
        if taint.key in options.drain_taints:
            return "it is cordoned" if taint.key == CORDONED else f"it has the taint {taint.key}"
    return None


def drained(peers: Iterable[Peer], why: str, options: IntentOptions) -> list[Peer]:
    """Return the peers of a node that is drained."""
    message = f"the node is drained: {why}"
    if options.drain == "withdraw":
        node = ObjectRef("Node", "", options.node)
        return [
            replace(
                peer,
                route_set=None,
                silent=tuple(Silent(f, DRAINED, message, node) for f in peer.families),
            )
            for peer in peers
        ]
    choice = LastChoice(message, options.drain_prepend)
    return [replace(peer, last_choice=choice) for peer in peers]


def told(peers: Iterable[Peer]) -> str | None:
    """Say of the peers of a node what is done and why, where it is drained."""
    for peer in peers:
        if peer.last_choice is not None:
            return f"routes are told as a last choice, as {peer.last_choice.reason}"
        for silence in peer.silent:
            if silence.reason == DRAINED:
                return f"routes are taken back, as {silence.message}"
    return None
