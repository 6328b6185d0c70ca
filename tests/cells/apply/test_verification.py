"""When targets are verified, what is logged of each drift, and what a request gets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.apply import verification
from cells.apply.verification import MAX_LOGGED, DriftMetrics, NotReadyError, VerificationLoop
from cells.hive import HealthTree
from cells.options import ApplyOptions
from reconcilers.target import Drift
from reconcilers.target.reconciler import ReconcileError
from tests.support import looptime

WITHOUT = Drift("peers", "main/a", missing=1, details=("192.0.2.1",))


class Target:
    """A target that a request reads again."""

    def __init__(self, name: str) -> None:
        self.name, self.reconciler = name, self
        self.fails = False
        self.reads = 0

    @contextlib.asynccontextmanager
    async def read_again(self) -> AsyncIterator[None]:
        if self.fails:
            raise ReconcileError("no answer")
        self.reads += 1
        yield


class Stand:
    """A verification whose slices and first pass are the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, interval: float = 600.0) -> None:
        self.slices: list[Sequence[Drift]] = [()]
        self.began: list[float] = []
        self.error: Exception | None = None
        self.first = asyncio.Event()
        self.target = Target("peers")
        self.calls: list[str] = []
        self.tree = HealthTree()
        apply = SimpleNamespace(
            report=lambda: self.calls.append("report"), wake=lambda: self.calls.append("wake")
        )
        monkeypatch.setattr(verification, "Verification", self.verification)
        self.loop = VerificationLoop(
            cast("Any", SimpleNamespace(queues=[self.target])),
            cast("Any", apply),
            cast("Any", self.first),
            ApplyOptions(verify_interval=interval),
            self.tree,
            cast("Any", SimpleNamespace(add=self.add)),
        )

    def add(self, name: str, job: Any) -> None:  # noqa: ANN401
        assert name == "verification"
        self.job = job

    def verification(self, runner: Any, clock: Any) -> Any:  # noqa: ANN401
        assert runner.queues == [self.target]
        self.began.append(clock())
        return SimpleNamespace(objects=7, slices=self.sliced)

    def sliced(self) -> Iterator[Sequence[Drift]]:
        if self.error is not None:
            raise self.error
        yield from self.slices

    @property
    def health(self) -> tuple[str, str]:
        (status,) = [s for s in self.tree.report() if s.message]
        assert status.path == ("verification",)
        return str(status.level), status.message

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.job())
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_each_interval_from_the_first_round_on_and_never_at_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        stand, never = Stand(monkeypatch, 600.0), Stand(monkeypatch, 0.0)
        monkeypatch.setattr(verification, "Verification", stand.verification)
        async with stand.running():
            await asyncio.sleep(5000)
            assert stand.began == []
            began = asyncio.get_running_loop().time()
            stand.first.set()
            await asyncio.sleep(1300)
            assert [round(at - began) for at in stand.began] == [600, 1200]
            # A verification by itself reads nothing that the target knows.
            assert stand.target.reads == 0
        monkeypatch.setattr(verification, "Verification", never.verification)
        async with never.running():
            never.first.set()
            await asyncio.sleep(100_000)
            assert never.began == []

    looptime.run(scenario())


def test_a_request_is_refused_before_the_first_round_and_answered_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        stand = Stand(monkeypatch)
        with pytest.raises(NotReadyError, match="nothing has been applied yet"):
            async with asyncio.timeout(60):
                await stand.loop.request()
        stand.first.set()
        stand.slices = [(), (WITHOUT,)]
        async with stand.running():
            first, second = await asyncio.gather(stand.loop.request(), stand.loop.request())
            assert first is second
            assert (first.objects, first.drifts) == (7, (WITHOUT,))
            assert 0 <= first.seconds < 60
            assert stand.target.reads == 1
            assert len(stand.began) == 1
            state, text = stand.health
            assert state == "ok"
            assert text.startswith("7 objects compared in 0.")
            assert text.endswith(" s; drifted and repaired: peers main/a")
            assert stand.calls == []

    looptime.run(scenario())


def test_a_target_that_cannot_be_read_fails_and_wakes_the_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        stand = Stand(monkeypatch)
        stand.first.set()
        stand.target.fails = True
        async with stand.running():
            result = await stand.loop.request()
            assert result.drifts == (Drift("peers", "*", error="no answer"),)
            state, text = stand.health
            assert (state, text.partition("; ")[2]) == ("degraded", "failed: peers *: no answer")
            assert stand.calls == ["report", "wake"]

    looptime.run(scenario())


def test_a_request_ends_with_a_verification_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stand = Stand(monkeypatch)
        stand.first.set()
        stand.error = ValueError("a bug")
        job = asyncio.ensure_future(stand.job())
        with pytest.raises(asyncio.CancelledError):
            await stand.loop.request()
        with pytest.raises(ValueError, match="a bug"):
            await job

    looptime.run(scenario())


def test_each_drift_is_a_line_up_to_a_number_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = Drift("peers", "main/u", error="cannot be compared")
    failed = Drift("peers", "main/f", different=2, error="refused")
    extra = [Drift("routes", f"main/{n}", unexpected=1) for n in range(MAX_LOGGED)]

    async def scenario(drifts: Sequence[Drift]) -> list[dict[str, Any]]:
        stand = Stand(monkeypatch)
        stand.first.set()
        stand.slices = [drifts]
        with capture_logs() as logs:
            async with stand.running():
                await stand.loop.request()
        return cast("list[dict[str, Any]]", logs)

    first, second = looptime.run(scenario([unread, WITHOUT, failed]))
    common = {
        "event": "the speaker does not hold the intent",
        "event_name": "apply.drift",
        "log_level": "warning",
        "reconciler": "peers",
        "unexpected": None,
    }
    assert first == {
        **common,
        "object": "main/a",
        "missing": 1,
        "different": None,
        "details": "192.0.2.1",
        "repaired": True,
        "reason": None,
    }
    assert second == {
        **common,
        "object": "main/f",
        "missing": None,
        "different": 2,
        "details": None,
        "repaired": False,
        "reason": "refused",
    }
    lines = looptime.run(scenario(extra))
    assert [line["event_name"] for line in lines] == ["apply.drift"] * MAX_LOGGED
    assert {line["unexpected"] for line in lines} == {1}
    *lines, last = looptime.run(scenario([*extra, WITHOUT, failed]))
    assert len(lines) == MAX_LOGGED
    assert (last["event_name"], last["objects"]) == ("apply.drift_more", 2)


def test_drift_is_counted_by_reconciler() -> None:
    reports = [
        SimpleNamespace(description=SimpleNamespace(name=name), drifted=drifted)
        for name, drifted in (("peers", 3), ("routes", 0))
    ]
    (family,) = DriftMetrics(cast("Any", SimpleNamespace(reports=lambda: reports))).collect()
    assert family.name == "waggle_reconcile_drift"
    assert [(s.labels["reconciler"], s.value) for s in family.samples] == [
        ("peers", 3),
        ("routes", 0),
    ]
