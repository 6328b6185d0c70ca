"""Checks of the agents themselves: whether they answer, are ready, and are of one version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconcilers.dialect import Check, Evidence, Finding

CLOCK_SECONDS: Final = 5.0
"""Difference of clocks that is reported: answers are up to a second old, and requested in parallel."""


def answering(evidence: Evidence) -> Iterator[Finding]:
    """Check agents for ``waggle doctor``: all of them answer and are ready."""
    for node in evidence.nodes:
        if node.error:
            remedy = "kubectl -n waggle-system get pods -o wide, then describe and logs of its Pod"
            yield Finding(node=node.node, evidence=node.error, remedy=remedy)
        elif not node.status.get("ready", True):
            waiting = "; ".join(node.status.get("waiting", ())) or "a gate is closed"
            remedy = "see what it waits for; a peer that is down delays it for a minute at most"
            yield Finding(node=node.node, evidence=f"not ready: waits for {waiting}", remedy=remedy)


def versions(evidence: Evidence) -> Iterator[Finding]:
    """Check agents for ``waggle doctor``: all of them have one version."""
    by_version: dict[str, list[str]] = {}
    for node in evidence.answered:
        by_version.setdefault(node.version or "unknown", []).append(node.node)
    if len(by_version) > 1:
        counts = [
            f"{version} on {nodes[0]}{_others(nodes)}" for version, nodes in by_version.items()
        ]
        remedy = (
            "let the rollout end: kubectl -n waggle-system rollout status daemonset/waggle-agent"
        )
        yield Finding(level="warning", evidence="; ".join(counts), remedy=remedy)


def _others(nodes: list[str]) -> str:
    return f" and {len(nodes) - 1} more" if nodes[1:] else ""


def clocks(evidence: Evidence) -> Iterator[Finding]:
    """Check that the agents' clocks agree: tokens, certificates, Leases and logs depend on them."""
    cluster = evidence.cluster
    if cluster is not None and cluster.clock_ahead is not None:
        seconds = cluster.clock_ahead
        if abs(seconds) >= CLOCK_SECONDS:
            text = f"the API server's clock is {_differs(seconds)} this host's"
            remedy = "check NTP of both: compare timedatectl"
            yield Finding(level="warning", evidence=text, remedy=remedy)
    for node in evidence.answered:
        remedy = "start time synchronization on the node (timedatectl, chronyc tracking)"
        if abs(node.clock_ahead) >= CLOCK_SECONDS:
            text = f"its clock is {_differs(node.clock_ahead)} this host's"
            yield Finding(level="warning", node=node.node, evidence=text, remedy=remedy)
        elif node.host.get("clockSynchronized") is False:
            text = "the kernel's clock is not synchronized"
            yield Finding(level="warning", node=node.node, evidence=text, remedy=remedy)


def _differs(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"


AGENTS: Final = Check(
    name="agents", question="all agents answer and are ready", needs="agents", run=answering
)
VERSIONS: Final = Check(
    name="versions", question="agents have one version", needs="agents", run=versions
)
CLOCK: Final = Check(name="clock", question="clocks agree", needs="any", run=clocks)
