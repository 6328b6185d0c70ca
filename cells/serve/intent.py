"""The intent of the node, for `waggle plan`: instances, sessions, problems and routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cells.api.resource import UnavailableError
from cells.intent.cell import IntentLoop
from cells.state.node import ThisNode
from reconcilers.apply.passwords import Passwords
from reconcilers.intent_tables import IntentTables, Json
from resources.tables import Tables
from statedb import Database


class AgentIntent:
    """The intent of the node, as ``waggle plan`` compares it."""

    def __init__(
        self,
        node: ThisNode,
        database: Database,
        resources: Tables,
        intent: IntentTables,
        loop: IntentLoop,
    ) -> None:
        self._node = node.name
        self._database = database
        self._resources = resources
        self._intent = intent
        self._loop = loop
        self._passwords = Passwords(database, intent, resources)

    def intent(self) -> Iterator[Sequence[Json]]:
        """Yield the items of the state in slices, the node first.

        Raises `UnavailableError` before the first round.
        """
        if self._loop.explainer() is None:
            raise UnavailableError("not all sources have been read yet; retry in a moment")
        return self._slices()

    def _slices(self) -> Iterator[Sequence[Json]]:
        # For `waggle plan` alone: no start waits for its import.
        from reconcilers.plan import node_state, state_items

        snapshot = self._database.snapshot()
        password_of = self._passwords.reader(snapshot)
        bfd = not self._loop.bfd_off
        yield [{"node": self._node, "bfd": bfd}]
        state = node_state(
            snapshot, self._resources, self._intent, password_of, bfd=bfd, routes=False
        )
        yield from state_items(snapshot, self._intent, state)
