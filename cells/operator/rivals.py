"""The leader's search for other implementations of the enabled dialects: health and log name them."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from cells.hive import Group, Health
from reconcilers.dialect import Dialect, Rival
from reconcilers.operator.rivals import RunningRival, running_rivals
from resources.kubernetes import Writer

POLL_INTERVAL_SECONDS = 180.0
"""Between two searches."""

log = structlog.get_logger("waggle.operator")


class RivalSearch:
    """A `cells.operator.leader_check.LeaderCheck`."""

    name = "rivals"

    def __init__(self, dialects: Group[Dialect], health: Health) -> None:
        self._dialects = [dialect for dialect in dialects if dialect.each(Rival)]
        self._health = health.scope(self.name)
        """With a scope for each dialect that has a rival."""
        self._known: dict[str, str] = {}
        """By dialect: the message."""

    @property
    def needed(self) -> bool:
        """True if an enabled dialect has rivals."""
        return bool(self._dialects)

    async def run(self, writer: Writer) -> float:
        """Search once. Raises `KubernetesError`."""
        self._report(await running_rivals(writer, self._dialects))
        return POLL_INTERVAL_SECONDS

    def _report(self, running: Sequence[RunningRival]) -> None:
        messages: dict[str, list[str]] = {}
        for rival in running:
            messages.setdefault(rival.dialect, []).append(rival.message)
        rivals = {dialect: ". ".join(texts) for dialect, texts in messages.items()}
        for dialect in self._known.keys() - rivals.keys():
            self._health.scope(dialect).remove()
            log.info("rival is gone", event_name="operator.rival_gone", dialect=dialect)
        for dialect, text in rivals.items():
            self._health.scope(dialect).degraded(text)
            if self._known.get(dialect) != text:
                log.warning("rival", event_name="operator.rival", dialect=dialect, reason=text)
        self._known = rivals
