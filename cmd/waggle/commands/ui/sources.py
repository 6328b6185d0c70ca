"""Sources of the page of ``waggle ui``: one agent, or all agents of a cluster as one list."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from cells.api.client import Client
from cells.api.transport import AgentError
from waggle import output
from waggle.fleet.ask import Fleet

Json = dict[str, Any]
Query = Mapping[str, str]
Revisions = Mapping[str, int]
"""Revisions of the views by name, as `/v1/live` of an agent has them; empty if unknown."""
AGAIN_SECONDS: Final = 2.0
"""Between two attempts to follow an agent that does not answer."""
CLUSTER_SECONDS: Final = 5.0
"""Between two readings of a cluster."""


class Changed(Protocol):
    """Called whenever the page is to read again."""

    def __call__(self, revisions: Revisions = ...) -> None:
        """Send pages the revisions: a view of another revision is read, without any each view."""


class Source(Protocol):
    """The source of the page's data."""

    def read(self, path: str, query: Query) -> Json:
        """Return the answer to a request. Blocking; raises `AgentError`."""

    def follow(self, changed: Changed) -> None:
        """Call ``changed`` whenever the page is to read again, for good. Blocking."""


class OneAgent:
    """The agent of a socket."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self, path: str, query: Query) -> Json:
        """See `Source`."""
        return self._client.get(path, query)

    def follow(self, changed: Changed) -> None:
        """See `Source`."""
        while True:
            try:
                for revisions in self._client.stream("/v1/live", {}):
                    changed(revisions)
            except AgentError:
                changed()  # the page shows that the agent does not answer
            time.sleep(AGAIN_SECONDS)


class AllAgents:
    """The agents of a cluster: their items in one list, each with its node."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._asking = threading.Semaphore(2)
        """Requests to the cluster at once; each asks all agents in parallel."""

    def read(self, path: str, query: Query) -> Json:
        """See `Source`."""
        with self._asking:
            answers = self._fleet.ask(lambda client: client.get(path, query))
        return merged(answers.by_node, [failure.item() for failure in answers.failures])

    def follow(self, changed: Changed) -> None:
        """See `Source`."""
        while True:
            time.sleep(CLUSTER_SECONDS)
            changed()


def merged(by_node: Mapping[str, Json], failures: list[dict[str, str]]) -> Json:
    """Return the answers of nodes as one.

    A node that has nothing of the name is an error only where no node has something.
    """
    items: list[Json] = []
    errors, absent = list(failures), list[dict[str, str]]()
    for node, answer in by_node.items():
        items += [{**item, "node": node} for item in answer["items"]]
        for error in answer.get("errors", ()):
            (absent if error.get("code") == "NotFound" else errors).append({**error, "node": node})
    answer = output.document("List", items, errors if items else [*errors, *absent])
    if any(of.get("truncated") for of in by_node.values()):
        answer["truncated"] = True
    return answer
