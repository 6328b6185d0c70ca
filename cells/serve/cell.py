"""The api cell: the server, and what each path reads."""

from __future__ import annotations

import functools
from typing import NoReturn

from cells.api.resource import ApiPlain, PlainError, Query
from cells.dialects.cell import DialectCell
from cells.hive import Wiring, provide
from cells.hive.composition import Composition
from cells.serve.agent_bfd import AgentBfd
from cells.serve.agent_resources import agent_resources
from cells.serve.agent_routing import AgentRouting
from cells.serve.clear import ClearPeers, clear_action
from cells.serve.explain import AgentExplanations
from cells.serve.host import AgentHost
from cells.serve.intent import AgentIntent
from cells.serve.metrics import metrics_resource
from cells.serve.missing_peers import MissingPeers
from cells.serve.passwords import AgentPasswords, passwords_action
from cells.serve.peer_names import PeerNames
from cells.serve.received import AgentReceivedExplanations
from cells.serve.routing import SpeakerRouting
from cells.serve.server import ApiServer
from cells.serve.status import AgentStatus
from cells.state.node import ThisNode
from speaker.api import SpeakerPort


def paths_while_off(composition: Composition) -> tuple[ApiPlain, ...]:
    """Return the paths of API dialects that are off: each answers with status 503."""

    def refuse(text: str, _: Query) -> NoReturn:
        raise PlainError(503, text)

    return tuple(
        ApiPlain(path=path, read=functools.partial(refuse, text))
        for cell in composition.disabled()
        if isinstance(cell, DialectCell)
        for path, text in cell.entry.paths_while_off
    )


def make_clearing(node: ThisNode, speaker: SpeakerPort, names: PeerNames) -> ClearPeers:
    """Return what resets the sessions of an agent."""
    return ClearPeers(node, speaker, names)


WIRING = Wiring(
    private=(
        PeerNames,
        provide(AgentRouting, as_=SpeakerRouting),
        AgentStatus,
        AgentHost,
        AgentBfd,
        MissingPeers,
        AgentExplanations,
        AgentReceivedExplanations,
        AgentIntent,
        make_clearing,
        AgentPasswords,
    ),
    invokes=(ApiServer,),
    contributes=(
        agent_resources,
        metrics_resource,
        clear_action,
        passwords_action,
        paths_while_off,
    ),
)
