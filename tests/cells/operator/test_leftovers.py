"""Objects of dialects that are off are deleted at once, and seldom while agents write them again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from cells.hive import HealthTree
from cells.operator import leftovers
from cells.operator.leftovers import LONG_INTERVAL_SECONDS, QUICK_PASSES, LeftoverObjects
from tests.reconcilers.operator.test_leftovers import AGENT, metadata
from tests.reconcilers.operator.test_leftovers import Api as Objects
from tests.reconcilers.report.node_objects.build import SESSIONS
from tests.support import looptime


def test_agents_that_write_again_are_named_and_not_fought() -> None:
    tree = HealthTree()
    api = Objects(metadata("a", AGENT))
    dialect: Any = SimpleNamespace(node_object_kinds=(SESSIONS,))
    entry: Any = SimpleNamespace(load=lambda: dialect)
    job = LeftoverObjects([entry], cast("Any", None), asyncio.Event(), tree.scope("leftovers"))
    assert job.needed

    async def scenario() -> None:
        # The object is there again at each pass.
        for _ in range(3 * QUICK_PASSES):
            await job.delete(api)
            await asyncio.sleep(leftovers.POLL_INTERVAL_SECONDS)
        assert len(api.deleted) == QUICK_PASSES
        (report,) = [s for s in tree.report() if s.message]
        assert report.message == "agents write Session of a dialect that is off in the operator"
        await asyncio.sleep(LONG_INTERVAL_SECONDS)
        api.objects.clear()
        await job.delete(api)
        (report,) = [s for s in tree.report() if s.message]
        assert report.message == "objects of dialects that are off are deleted"

    looptime.run(scenario())
