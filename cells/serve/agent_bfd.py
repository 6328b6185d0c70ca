"""The BFD sessions of an agent, for the local API."""

from __future__ import annotations

from typing import Final

from cells.api.model import BfdItem
from cells.intent.cell import IntentLoop
from cells.serve.bfd import bfd_items
from cells.state.node import ThisNode
from reconcilers.intent_tables import IntentTables
from statedb import Database

NO_PROFILE: Final = "no peer has BFD settings"


class AgentBfd:
    """The BFD sessions of the agent."""

    def __init__(
        self,
        node: ThisNode,
        database: Database,
        intent: IntentTables,
        loop: IntentLoop,
    ) -> None:
        self._node = node.name
        self._database = database
        self._intent = intent
        self._loop = loop

    def bfd_sessions(self, peer: str | None, instance: str | None) -> list[BfdItem]:
        """Return the sessions, by instance and peer."""
        return bfd_items(self._node, self._database, self._intent, peer, instance)

    def why_no_bfd(self) -> str:
        """Return why there may be no session."""
        return self._loop.bfd_off or NO_PROFILE

    def bfd_problems(self) -> list[str]:
        """Return what is wrong with the process."""
        process = next(self._intent.bfd_process.all(self._database.snapshot()), None)
        return [] if process is None else list(process.problems)
