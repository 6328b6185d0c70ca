"""Checks of objects: whether they are valid, and whether status objects are up to date."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconcilers.dialect import Check, Evidence, Finding
from reconcilers.doctor.api_server import cluster_evidence
from reconcilers.doctor.sessions import ESTABLISHED


def statuses(evidence: Evidence) -> Iterator[Finding]:
    """Check status objects for ``waggle doctor``: they agree with the agents, and have a node."""
    cluster = cluster_evidence(evidence)
    for name in sorted(cluster.sessions.keys() - (cluster.nodes or cluster.sessions.keys())):
        sources = sorted({str(session.get("source", "")) for session in cluster.sessions[name]})
        text = f"{', '.join(sources[:3])}: there is no Node {name}"
        remedy = (
            "the leading operator deletes it: kubectl -n waggle-system get lease waggle-operator"
        )
        yield Finding(level="warning", node=name, evidence=text, remedy=remedy)
    for node in evidence.answered:
        # Instances and VRFs may have peers of one address; statuses spell their names differently.
        present: dict[object, set[str]] = {}
        for peer in node.peers:
            present.setdefault(peer.get("address"), set()).add(peer["state"])
        for session in cluster.sessions.get(node.node, ()):
            states = present.get(session.get("address"), set())
            was_up = session["state"] == ESTABLISHED
            if not states or any((state == ESTABLISHED) == was_up for state in states):
                continue
            state = min(states)
            yield Finding(
                level="warning",
                node=node.node,
                object=str(session.get("name", "")),
                evidence=f"{session.get('source')} has {session['state']}, the agent has {state}",
                remedy="run it again in 10 s; if it stays, see the line status of waggle status for "
                "why the agent cannot write",
            )
        reporting = str(node.status.get("reporting", ""))
        if "retried" in reporting:
            remedy = "see the reason; the roles of the chart, or the network to the API server"
            yield Finding(
                node=node.node, evidence=f"status not written: {reporting}", remedy=remedy
            )


def problems(evidence: Evidence) -> Iterator[Finding]:
    """Check objects for ``waggle doctor``: none is invalid or in conflict with another object."""
    reported: dict[tuple[str, str], list[str]] = {}
    for node in evidence.answered:
        for problem in node.status.get("problems", ()):
            if not problem.get("ofTenant"):
                text = ": ".join(filter(None, (problem.get("field"), problem["message"])))
                key = ", ".join(problem["objects"][:2]), text
                reported.setdefault(key, []).append(node.node)
    for (objects, text), nodes in reported.items():
        where = f" (on {len(nodes)} nodes)" if nodes[1:] else ""
        remedy = "correct what it names; of an invalid object the last valid version is in effect"
        node_name = "" if nodes[1:] else nodes[0]
        yield Finding(node=node_name, object=objects, evidence=text + where, remedy=remedy)


STATUSES: Final = Check(
    name="statuses",
    question="status objects are up to date",
    needs="cluster",
    run=statuses,
    reads="statuses",
)
OBJECTS: Final = Check(
    name="objects", question="no object is invalid", needs="agents", run=problems
)
