"""A status is written on change, at a limited rate, and retried with backoff."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

from cells.hive.rounds import in_slices
from reconcilers.dialect import ObjectStatus
from reconcilers.model import ObjectRef
from reconcilers.report.statuses import (
    LONGEST_RETRY_SECONDS,
    READ_INTERVAL_SECONDS,
    WRITE_INTERVAL_SECONDS,
    StatusClient,
    Statuses,
)
from reconcilers.target import ReconcileOutcome, Runner
from reconcilers.target.write_spread import WriteSpread
from resources.cilium.status import InstanceStatus, NodeConfigStatus
from resources.kubernetes import KubernetesError, StatusError
from resources.kubernetes.errors import Unreachable
from resources.metav1 import Condition
from resources.row_updates import replace_all
from statedb import Database, Index, Table
from tests.support import looptime
from tests.support.kinds import KINDS

PATH = "/apis/cilium.io/v2/ciliumbgpnodeconfigs/n1"


class Api:
    """An API server with one NodeConfig."""

    def __init__(self, status: dict[str, Any] | None = None) -> None:
        self.object: dict[str, Any] | None = {"metadata": {"name": "n1"}}
        if status is not None:
            self.object["status"] = status
        self.fails: KubernetesError | None = None
        self.calls: list[tuple[float, str]] = []
        self.bodies: list[Any] = []

    @property
    def status(self) -> Any:  # noqa: ANN401
        return None if self.object is None else self.object.get("status")

    def _called(self, what: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), what))
        if self.fails is not None:
            raise self.fails

    async def get(self, path: str) -> dict[str, Any] | None:
        assert path == PATH
        self._called("get")
        return self.object

    async def merge(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        assert path == f"{PATH}/status"
        self._called("patch")
        if self.object is None:
            raise StatusError(404, "not found")
        self.bodies.append(content)
        given = content["status"]
        merged = None if given is None else {**(self.status or {}), **given}
        kept = None if merged is None else {k: v for k, v in merged.items() if v is not None}
        self.object = {k: v for k, v in self.object.items() if k != "status"}
        if kept is not None:
            self.object["status"] = kept
        return self.object

    def times(self, what: str) -> list[float]:
        return [when for when, called in self.calls if called == what]


def row(asn: int = 65001, *, uid: str = "u", error: bool = False, at: str = "t1") -> ObjectStatus:
    condition = Condition(
        type="cilium.io/BGPReconcileError",
        status="True" if error else "False",
        reason="BGPReconcileError",
        message="",
        last_transition_time=at,
    )
    instance = InstanceStatus(name="i", local_asn=asn)
    return ObjectStatus(
        ObjectRef("CiliumBGPNodeConfig", "", "n1"),
        uid,
        NodeConfigStatus(bgp_instances=(instance,), conditions=(condition,)),
    )


class Run:
    """The reconciler of statuses over some virtual time; the row is changed by the test."""

    def __init__(
        self, api: StatusClient, *, enabled: bool = True, nodes: int = 1, seed: int = 1
    ) -> None:
        rng = random.Random(seed)  # noqa: S311
        self.api: Any = api
        self.outcomes: list[ReconcileOutcome] = []
        self.row: ObjectStatus | None = row()
        self._db = Database()
        self._table: Table[ObjectStatus] = self._db.table(
            "object-statuses", Index("key", lambda row: str(row.object))
        )
        self.statuses = Statuses(
            self._db,
            self._table,
            api,
            KINDS,
            WriteSpread(rng.random, lambda: nodes),
            enabled=enabled,
            now=lambda: asyncio.get_running_loop().time(),
        )
        self.runner = Runner(self._db, None, [self.statuses], rng, report=self.outcomes.append)

    @property
    def failures(self) -> list[ReconcileOutcome]:
        return [outcome for outcome in self.outcomes if outcome.error]

    @property
    def failure(self) -> str:
        (report,) = self.runner.reports()
        return "" if report.failure is None else report.failure[1]

    async def step(self) -> float | None:
        """Do a round; returns the seconds until the next one."""
        with self._db.write(self._table) as txn:
            replace_all(txn, self._table, [] if self.row is None else [self.row])
        now = asyncio.get_running_loop().time
        summary = await in_slices(self.runner.slices(now))
        return None if summary.retry_at is None else summary.retry_at - now()

    async def until(self, end: float, change: Callable[[float], None] | None = None) -> None:
        """Step when the job requests it, or each 0.1 s where the status changes all the time."""
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            if change is not None:
                change(loop.time())
            pause = await self.step()
            wait = end - loop.time() if pause is None else pause
            await asyncio.sleep(min(wait, 0.1) if change is not None else min(wait, end))


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    looptime.run(main())


def test_f09_a_status_that_is_current_is_not_written() -> None:
    async def scenario() -> None:
        first = Run(Api())
        await first.until(1)
        assert first.api.times("patch") == [0.0]
        again = Run(first.api)
        again.row = row(at="t2")
        await again.until(100)
        # The condition keeps its time, so that nothing differs.
        assert first.api.times("patch") == [0.0]

    run(scenario)


def test_f09_a_status_that_changes_all_the_time_is_written_every_five_seconds() -> None:
    async def scenario() -> None:
        job = Run(Api())

        def change(now: float) -> None:
            job.row = row(asn=1 + int(now * 10))

        await job.until(60, change)
        times = job.api.times("patch")
        assert 11 <= len(times) <= 12
        assert all(b - a >= WRITE_INTERVAL_SECONDS for a, b in itertools.pairwise(times))

    run(scenario)


def test_the_status_of_another_writer_is_replaced_as_a_whole() -> None:
    async def scenario() -> None:
        theirs = {"bgpInstances": [{"name": "old"}], "other": 1}
        job = Run(Api(theirs))
        await job.until(1)
        assert job.api.bodies[0]["status"]["other"] is None
        assert job.api.status.keys() == {"bgpInstances", "conditions"}
        assert [i["name"] for i in job.api.status["bgpInstances"]] == ["i"]

    run(scenario)


def test_f01_an_api_server_down_for_a_day_gets_few_requests_and_then_the_status() -> None:
    async def scenario() -> None:
        job = Run(Api())
        await job.until(1)
        job.api.fails = Unreachable("https://x", "refused")
        job.row = row(65002)

        def change(now: float) -> None:
            job.row = row(asn=65002 + int(now))

        before = len(job.api.calls)
        await job.until(600, change)
        assert len(job.api.calls) - before < 30
        await job.until(86400)
        requests = len(job.api.calls) - before
        longest = LONGEST_RETRY_SECONDS
        assert 86400 / (longest + WRITE_INTERVAL_SECONDS) < requests < 86400 / (longest / 2) + 10
        assert job.failure == "cannot reach https://x: refused"
        assert len(job.failures) == requests
        assert [outcome.repeated for outcome in job.failures[:3]] == [False, True, True]
        job.api.fails = None
        job.row = row(65099)
        await job.until(86400 + 2 * LONGEST_RETRY_SECONDS)
        assert job.api.status["bgpInstances"][0]["localASN"] == 65099
        assert [(o.written, o.recovered) for o in job.outcomes[-1:]] == [(True, True)]
        assert not job.failure

    run(scenario)


def test_a_forbidden_request_names_verb_and_resource() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.api.fails = StatusError(403, "User cannot")
        await job.until(1)
        assert job.failure == "may not get ciliumbgpnodeconfigs: User cannot"

    run(scenario)


def test_a_retry_after_is_respected() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.api.fails = StatusError(429, "slow down", 100.0)
        await job.until(99)
        assert len(job.api.calls) == 1

    run(scenario)


def test_without_a_node_config_in_the_api_server_no_request_is_sent() -> None:
    async def scenario() -> None:
        job = Run(Api())
        texts = {None: "is known", row(uid=""): "in the API server"}
        for nothing, text in texts.items():
            job.row = nothing
            await job.until(asyncio.get_running_loop().time() + 100)
            assert job.statuses.message.endswith(text)
            assert not job.failure
        assert job.api.calls == []

    run(scenario)


def test_the_status_of_a_recreated_node_config_is_written_again() -> None:
    async def scenario() -> None:
        job = Run(Api())
        await job.until(10)
        job.api.object = {"metadata": {"name": "n1"}}
        job.row = row(uid="u2")
        await job.until(30)
        assert job.api.status is not None
        job.api.object = None
        job.row = row(65002, uid="u2")
        await job.until(60)
        assert job.failure or job.api.status is None

    run(scenario)


def test_a_status_lost_by_an_etcd_restore_is_written_again() -> None:
    async def scenario() -> None:
        job = Run(Api())
        await job.until(10)
        job.api.object = {"metadata": {"name": "n1"}, "status": {"bgpInstances": []}}
        await job.until(READ_INTERVAL_SECONDS + 20)
        assert [i["name"] for i in job.api.status["bgpInstances"]] == ["i"]

    run(scenario)


def test_c51_with_the_status_report_off_the_status_is_cleared_once() -> None:
    async def scenario() -> None:
        on = Run(Api())
        await on.until(1)
        off = Run(on.api, enabled=False)

        def change(now: float) -> None:
            off.row = row(asn=1 + int(now))

        await off.until(100, change)
        assert on.api.bodies[-1] == {"status": None}
        assert on.api.status is None
        assert len(on.api.times("patch")) == 2
        assert "switched off" in off.statuses.message
        # Where there is none, nothing is written at all.
        again = Run(on.api, enabled=False)
        await again.until(200)
        assert len(on.api.times("patch")) == 2

    run(scenario)
