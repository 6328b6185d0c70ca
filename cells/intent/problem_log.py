"""The log of problems: of a node by the agent, of the whole cluster by the operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconcilers.intent.continued_problems import without_continued
from reconcilers.model import Problem


class ProblemLog:
    """Logs each problem once when it is new and once when it is solved, under two events."""

    def __init__(self, log: Any, new_event: str, solved_event: str) -> None:  # noqa: ANN401  structlog has no type for its loggers
        self._log = log
        self._new, self._solved = new_event, solved_event

    def write(self, solved: Iterable[Problem], new: Iterable[Problem]) -> None:
        """Log problems, without conflicts that go on while an object joins or leaves them."""
        solved, new = without_continued(solved, new)
        for problem in solved:
            self._log.info(
                "problem solved",
                event_name=self._solved,
                object=problem.names,
                field=problem.field or None,
            )
        for problem in new:
            self._log.warning(
                "problem",
                event_name=self._new,
                object=problem.names,
                field=problem.field or None,
                reason=problem.message,
                count=problem.count if problem.count > 1 else None,
                of_tenant=problem.of_tenant or None,
            )
