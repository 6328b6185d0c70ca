"""Objects of dialects that are off are deleted at once, and seldom while agents write them again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from cells.dialects.cell import DialectCell
from cells.hive import HealthTree
from cells.operator.leftovers import (
    LONG_INTERVAL_SECONDS,
    POLL_INTERVAL_SECONDS,
    QUICK_PASSES,
    LeftoverObjects,
)
from reconcilers.dialect import WrittenObjects
from tests.reconcilers.operator.test_leftovers import AGENT, metadata
from tests.reconcilers.operator.test_leftovers import Api as Objects
from tests.reconcilers.report.node_objects.build import SESSIONS


def test_agents_that_write_again_are_named_and_not_fought() -> None:
    tree = HealthTree()
    api = Objects(metadata("a", AGENT))
    written = WrittenObjects((SESSIONS,), lambda *_: ())
    dialect: Any = SimpleNamespace(each=lambda _: (written,))
    entry: Any = SimpleNamespace(load=lambda: dialect)
    cell = DialectCell(name="toy", description="A dialect.", entry=entry, in_operator=True)
    composition: Any = SimpleNamespace(disabled=lambda: [cell])
    job = LeftoverObjects(composition, tree.scope("operator"))
    assert job.needed

    async def scenario() -> None:
        # The object is there again at each pass.
        pauses = [await job.run(api) for _ in range(QUICK_PASSES + 1)]
        assert pauses == [POLL_INTERVAL_SECONDS] * (QUICK_PASSES - 1) + [LONG_INTERVAL_SECONDS] * 2
        (report,) = [s for s in tree.report() if s.message]
        assert report.message == "agents write Session of a dialect that is off in the operator"
        api.objects.clear()
        assert await job.run(api) == POLL_INTERVAL_SECONDS
        (report,) = [s for s in tree.report() if s.message]
        assert report.message == "objects of dialects that are off are deleted"

    asyncio.run(scenario())
