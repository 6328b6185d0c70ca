"""Summary of a view of the fleet: nodes that answered, sessions, versions, clocks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from resources.enumeration import counted
from waggle.output import read_time
from waggle.sessions import ESTABLISHED

UNKNOWN_VERSION: Final = "unknown"
"""Of an agent whose answers do not have it yet."""
CLOCK_SECONDS: Final = 5.0
"""Difference of clocks from which it is reported; answers are up to seconds old."""
RECEIVED_AT: Final = "receivedAt"
"""Member of an answer, added here: when it came. Other nodes may have taken longer to fail."""


class Summary(NamedTuple):
    """The numbers of a view."""

    nodes: int
    answered: int
    versions: Mapping[str, list[str]]
    """Nodes by the version of their agent."""
    clocks: Mapping[str, float]
    """Seconds by which the clock of a node is ahead, where that is much."""
    sessions: int | None = None
    """None where the view has no sessions."""
    established: int = 0

    def members(self) -> dict[str, Any]:
        """Return it as a member of the answer."""
        members: dict[str, Any] = {"nodes": self.nodes, "answered": self.answered}
        if self.sessions is not None:
            members |= {"sessions": self.sessions, "established": self.established}
        members["versions"] = {version: len(nodes) for version, nodes in self.versions.items()}
        if self.clocks:
            members["clockSkewSeconds"] = dict(self.clocks)
        return members

    def lines(self) -> Iterator[str]:
        """Yield it as sentences."""
        parts = []
        if self.sessions is not None:
            parts.append(f"{self.established} of {counted(self.sessions, 'session')} Established")
        parts.append(f"{self.answered} of {counted(self.nodes, 'node')} answered")
        if len(self.versions) == 1:
            parts.append(f"version {next(iter(self.versions))}")
        yield "; ".join(parts)
        if len(self.versions) > 1:
            counts = [f"{version} on {_nodes(nodes)}" for version, nodes in self.versions.items()]
            yield f"agents have different versions: {', '.join(counts)}"
        for node, seconds in self.clocks.items():
            where = "ahead of" if seconds > 0 else "behind"
            yield f"{node}: its clock is {abs(seconds):.0f} s {where} this host's"


def _nodes(nodes: list[str]) -> str:
    return nodes[0] if len(nodes) == 1 else counted(len(nodes), "node")


def summarize(
    answers: Mapping[str, Mapping[str, Any]],
    failed: Iterable[str],
    now: datetime,
    sessions: Iterable[Mapping[str, Any]] | None = None,
) -> Summary:
    """Return the summary of answers by node; ``sessions`` are all that are known, also by statuses."""
    versions: dict[str, list[str]] = {}
    clocks: dict[str, float] = {}
    for node, answer in answers.items():
        versions.setdefault(str(answer.get("version", UNKNOWN_VERSION)), []).append(node)
        received = answer.get(RECEIVED_AT, now)
        seconds = (read_time(answer["generatedAt"]) - received).total_seconds()
        if abs(seconds) >= CLOCK_SECONDS:
            clocks[node] = round(seconds)
    common = sorted(versions.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    nodes = len({*answers, *failed})
    if sessions is None:
        return Summary(nodes, len(answers), dict(common), clocks)
    states = Counter(session["state"] for session in sessions)
    return Summary(nodes, len(answers), dict(common), clocks, states.total(), states[ESTABLISHED])
