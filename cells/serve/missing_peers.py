"""Why peers are missing from the list of an agent's sessions, a sentence each."""

from __future__ import annotations

from typing import Final

from cells.api.model import problem_text
from reconcilers.intent.render import problems
from reconcilers.intent_tables import IntentTables, problem_item
from resources.tables import Tables
from statedb import Database

MAX_SENTENCES: Final = 20
"""Problems that an answer lists; `waggle status` has all of them."""


class MissingPeers:
    """The problems of an agent's configuration, as reasons."""

    def __init__(self, database: Database, resources: Tables, intent: IntentTables) -> None:
        self._database = database
        self._resources = resources
        self._intent = intent

    def reasons(self, *, empty: bool) -> list[str]:
        """Return the problems of unconfigured peers; all problems where there are no peers."""
        snapshot = self._database.snapshot()
        if not empty:
            unconfigured = [row for row in self._intent.problems.all(snapshot) if row.unconfigured]
            texts = sorted(
                f"{'/'.join(row.unconfigured)} is not configured: {problem_text(problem_item(row))}"
                for row in unconfigured
            )
        else:
            rows = list(problems(snapshot, self._resources, self._intent))
            texts = [problem_text(problem) for problem in rows]
            texts += sorted(
                f"{row.object}: {row.message}"
                for row in self._intent.conditions.all(snapshot)
                if row.status
                and row.message
                # A condition may repeat the problems of its object.
                and not any(problem["message"] in row.message for problem in rows)
            )
        hidden = len(texts) - MAX_SENTENCES
        return texts if hidden <= 0 else [*texts[:MAX_SENTENCES], f"and {hidden} more"]
