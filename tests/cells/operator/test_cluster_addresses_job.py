"""When the addresses of the cluster are written, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.core import Counter
from structlog.testing import capture_logs

from cells.apply.reconcile import Runners
from cells.hive import HealthTree
from cells.operator.cluster_addresses import ClusterAddressesJob
from cells.operator.owner import Owner
from cells.options import OperatorOptions
from reconcilers.dialect import Unread
from reconcilers.intent.service_addresses import published
from resources.core.kinds import NODE
from resources.kubernetes import KubernetesError
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.build import node
from tests.support import looptime

PATH = f"/api/v1/namespaces/bgp/configmaps/{published.NAME}"


class Stand:
    """The job of a leader, and the stored object."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.count = 0
        """The number of Nodes so far."""
        self.writes: list[float] = []
        self.reads: list[float] = []
        self.error: Exception | None = None
        self.tree = HealthTree()
        self.database = Database()
        self.tables = Tables(self.database)
        self.leads = asyncio.Event()
        self.runners = Runners()
        self.errors = Counter("errors", "Errors.", registry=None)
        kubernetes: Any = SimpleNamespace(unread=Unread(), writer=self.writer)
        self.kubernetes = kubernetes
        self.job = ClusterAddressesJob(
            self.database,
            self.tables,
            (),
            kubernetes,
            self.leads,
            "bgp",
            Owner(OperatorOptions()),
            self.runners,
            self.errors,
            self.tree.scope("addresses"),
        )

    @contextlib.asynccontextmanager
    async def writer(self, manager: str) -> AsyncIterator[Stand]:
        assert manager == "waggle-operator"
        yield self

    async def get(self, path: str) -> dict[str, Any] | None:
        assert path == PATH
        self.reads.append(asyncio.get_running_loop().time())
        if self.error is not None:
            raise self.error
        return self.stored

    async def apply(self, path: str, manifest: dict[str, Any]) -> None:
        assert path == PATH
        self.stored = manifest
        self.writes.append(asyncio.get_running_loop().time())

    def nodes(self, *names: str) -> None:
        with self.database.write(self.tables.nodes) as txn:
            for name in names:
                number = self.count
                self.count += 1
                value = node(name)
                value["status"]["addresses"][0]["address"] = f"192.0.{number // 256}.{number % 256}"
                self.tables.nodes.upsert(txn, NODE.decode(value))

    @property
    def health(self) -> tuple[str, str]:
        (status,) = self.tree.report()
        return str(status.level), status.message

    @property
    def numbers(self) -> dict[str, float]:
        """The metrics of the reconciler."""
        return {
            metric.name.removeprefix("waggle_reconcile_"): sample.value
            for metric in self.runners.collect()
            for sample in metric.samples
            if sample.labels == {"reconciler": "cluster-addresses"}
        }

    def run(self, scenario: Callable[[Callable[[], float]], Coroutine[Any, Any, None]]) -> None:
        """Run a scenario beside the job; it takes the seconds since its begin."""

        async def main() -> None:
            began = asyncio.get_running_loop().time()
            task = asyncio.ensure_future(self.job.run())
            await scenario(lambda: asyncio.get_running_loop().time() - began)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.writes[:] = [round(at - began, 2) for at in self.writes]
            self.reads[:] = [round(at - began, 2) for at in self.reads]

        looptime.run(main())


def test_nothing_is_read_or_written_before_the_operator_leads() -> None:
    stand = Stand()
    stand.nodes("a")

    async def scenario(_: Callable[[], float]) -> None:
        await asyncio.sleep(100)
        assert stand.reads == []
        stand.leads.set()
        with capture_logs() as logs:
            await asyncio.sleep(1)
        (line,) = logs
        assert stand.stored is not None
        size = published.octets(stand.stored["data"])
        assert line == {
            "event": "published the addresses of the cluster",
            "event_name": "operator.addresses_published",
            "log_level": "info",
            "object": f"bgp/{published.NAME}",
            "octets": size,
        }
        await asyncio.sleep(5)
        assert stand.health == ("ok", f"published, {size} octets")
        assert stand.stored["metadata"].get("ownerReferences") is None

    stand.run(scenario)
    assert stand.writes == [100]


def test_writes_are_five_seconds_apart_or_20_ms_for_each_of_many_nodes() -> None:
    for count, pause in ((1, 5.0), (300, 6.0)):
        stand = Stand()
        stand.leads.set()
        names = [f"n{number}" for number in range(count)]
        stand.nodes(*names)

        async def scenario(_: Callable[[], float], stand: Stand = stand) -> None:
            await asyncio.sleep(1)
            stand.nodes("x")
            await asyncio.sleep(4 * pause)  # noqa: B023

        stand.run(scenario)
        # Of the Nodes at the first write. The object is read as often.
        assert stand.writes == stand.reads == [0, pause]


def test_the_stored_object_is_compared_every_ten_minutes() -> None:
    stand = Stand()
    stand.leads.set()
    stand.nodes("a")

    async def scenario(_: Callable[[], float]) -> None:
        await asyncio.sleep(10)
        assert stand.stored is not None
        stand.stored = {**stand.stored, "data": {"nodes": "another's\n"}}
        await asyncio.sleep(600)

    stand.run(scenario)
    assert stand.writes == stand.reads == [0, 600]


def test_an_api_server_that_does_not_answer_is_tried_again_after_30_seconds() -> None:
    stand = Stand()
    stand.leads.set()
    stand.nodes("a")
    stand.error = KubernetesError("no answer")

    async def scenario(_: Callable[[], float]) -> None:
        await asyncio.sleep(1)
        text = f"ConfigMap bgp/{published.NAME} is not written: no answer"
        assert stand.health == ("degraded", text)
        assert stand.numbers == {"objects": 1, "waiting_objects": 1, "failed_objects": 1}
        stand.error = None
        await asyncio.sleep(60)
        assert stand.numbers == {"objects": 1, "waiting_objects": 0, "failed_objects": 0}

    stand.run(scenario)
    assert stand.writes == [30]
    assert stand.reads == [0, 30]
    assert [metric.samples[0].value for metric in stand.errors.collect()] == [1]


def test_changes_do_not_shorten_the_backoff_of_a_failed_attempt() -> None:
    stand = Stand()
    stand.leads.set()
    stand.nodes("a")
    stand.error = KubernetesError("no answer")

    async def scenario(_: Callable[[], float]) -> None:
        for name in "bcdefgh":
            await asyncio.sleep(1)
            stand.nodes(name)
        stand.error = None
        await asyncio.sleep(60)

    stand.run(scenario)
    assert stand.reads == [0, 5, 10]
    assert stand.writes == [10]


def test_what_is_too_large_for_an_object_is_not_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(published, "MAX_OCTETS", 10)
    stand = Stand()
    stand.leads.set()
    stand.nodes("a", "b")

    async def scenario(_: Callable[[], float]) -> None:
        await asyncio.sleep(1)
        rejected = f"ConfigMap bgp/{published.NAME} is not written: 49 octets are more than 10"
        assert stand.health == ("degraded", rejected)
        await asyncio.sleep(99)
        monkeypatch.setattr(published, "MAX_OCTETS", 1000)
        assert stand.writes == []
        stand.nodes("c")
        await asyncio.sleep(1)
        assert stand.health == ("ok", "published, 56 octets")

    stand.run(scenario)
    assert stand.writes == [100]
    assert stand.reads == [0, 100]


def test_before_every_kind_was_answered_nothing_is_published() -> None:
    for unread in (Unread(waits_for="Node"), Unread(kinds={"nodes": "Node"})):
        stand = Stand()
        stand.leads.set()
        stand.nodes("a")
        named = {stand.tables.nodes.name: "Node"} if unread.kinds else {}
        stand.kubernetes.unread = Unread(waits_for=unread.waits_for, kinds=named)

        async def scenario(_: Callable[[], float], stand: Stand = stand) -> None:
            await asyncio.sleep(9)
            assert stand.health == ("ok", "waits for the Nodes")
            stand.kubernetes.unread = Unread()
            await asyncio.sleep(2)

        stand.run(scenario)
        assert stand.writes == [10]
        assert cast("Any", stand.stored)["data"]["nodes"] == "192.0.0.0\n"
