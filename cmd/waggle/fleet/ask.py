"""Requests to the agents of all nodes, in parallel; a silent node delays no other node."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Generic, NamedTuple, TypeVar

from cells.api.client import Client
from cells.api.pod_transport import ClusterLoop, PodTransport
from cells.api.transport import AgentError
from resources.kubernetes import Access
from waggle.fleet.agents import AgentPod, find_agents
from waggle.fleet.flags import default_kubeconfig

PARALLEL: Final = 64
"""Agents with a request at the same time, at the most."""
CONNECT_SECONDS: Final = 5.0
LIST_SECONDS: Final = 20.0
"""For the list of the agents' Pods, credential plugins of the kubeconfig included."""

T = TypeVar("T")
Ask = Callable[[Client], T]


class Failure(NamedTuple):
    """A node without an answer."""

    node: str
    code: str
    message: str

    def item(self) -> dict[str, str]:
        """Return it as a member of ``errors``."""
        return {"code": self.code, "message": self.message, "node": self.node}


class Answers(NamedTuple, Generic[T]):
    """The answers of agents by node, and the nodes without an answer."""

    by_node: dict[str, T]
    failures: list[Failure]


class Fleet:
    """The agents of a cluster."""

    def __init__(self, loop: ClusterLoop, agents: list[AgentPod], seconds: float) -> None:
        self.loop = loop
        self.agents = agents
        self._seconds = seconds

    def only(self, nodes: Container[str]) -> Fleet:
        """Return the agents of these nodes."""
        agents = [agent for agent in self.agents if agent.node in nodes]
        return Fleet(self.loop, agents, self._seconds)

    def ask(self, request: Ask[T]) -> Answers[T]:
        """Return the answers to a request. Whatever an agent answers, it is that node's failure."""

        def answer_of(agent: AgentPod) -> T | Failure:
            if agent.problem:
                return Failure(agent.node, "AgentNotRunning", agent.problem)
            try:
                return request(Client(PodTransport(self.loop, agent.container, self._seconds)))
            except AgentError as error:
                return Failure(agent.node, error.code, str(error))
            except Exception as error:  # noqa: BLE001  nonsense that no rule foresees
                text = f"its answer is not understood: {type(error).__name__}: {error}"
                return Failure(agent.node, "BadAnswer", text)

        with ThreadPoolExecutor(min(PARALLEL, len(self.agents) or 1)) as pool:
            results = list(pool.map(answer_of, self.agents))
        pairs = list(zip(self.agents, results, strict=True))
        return Answers(
            {agent.node: r for agent, r in pairs if not isinstance(r, Failure)},
            [r for _, r in pairs if isinstance(r, Failure)],
        )


@contextmanager
def cluster_of(args: argparse.Namespace) -> Iterator[ClusterLoop]:
    """Connect to the API server of the flags."""
    access = Access(args.kubeconfig or default_kubeconfig(), args.context)
    with ClusterLoop(access, CONNECT_SECONDS) as loop:
        yield loop


def fleet_of(args: argparse.Namespace, loop: ClusterLoop) -> Fleet:
    """Return the agents of the flags. Raises `AgentError`; NotFound for a node without an agent."""
    agents = in_cluster(loop, find_agents(loop.connection, args.namespace))
    wanted = wanted_nodes(args)
    known = {agent.node for agent in agents}
    for node in wanted:
        if node not in known:
            raise AgentError("NotFound", unknown_node(node, known))
    chosen = [agent for agent in agents if not wanted or agent.node in wanted]
    return Fleet(loop, chosen, args.timeout)


def wanted_nodes(args: argparse.Namespace) -> list[str]:
    """Return the nodes of ``--node``; none means all."""
    return args.node if isinstance(args.node, list) else [args.node] if args.node else []


def unknown_node(node: str, known: set[str]) -> str:
    """Return a sentence with the nearest names."""
    import difflib

    close = difflib.get_close_matches(node, sorted(known), n=3)
    hint = f"; the nearest: {', '.join(close)}" if close else ""
    return f"no agent has a Pod on a node {node}{hint}"


def in_cluster(loop: ClusterLoop, work: Coroutine[Any, Any, T], seconds: float = LIST_SECONDS) -> T:
    """Return the result of a coroutine. Raises `AgentError`, also once the time is over."""
    try:
        return loop.run(work, seconds)
    except TimeoutError:
        text = f"the API server has not answered within {seconds:g} s"
        raise AgentError("ClusterUnreachable", text) from None
