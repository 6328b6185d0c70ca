"""The job that verifies the whole actual state from time to time, and when it is requested."""

from __future__ import annotations

import asyncio
import contextlib
import time

import msgspec
import structlog
from prometheus_client.core import CounterMetricFamily, Metric

from cells.apply.loop import ApplyLoop, FirstPass
from cells.hive import Health
from cells.hive.jobs import Jobs
from cells.options import ApplyOptions
from reconcilers.target import Drift, Runner, Verification
from reconcilers.target.reconciler import ReconcileError
from reconcilers.target.verification import SLICE_SECONDS
from resources.enumeration import counted, first_of

MAX_LOGGED = 100
"""Drifted objects of one verification that are logged one by one."""

log = structlog.get_logger("waggle.apply")


class VerificationResult(msgspec.Struct, frozen=True):
    """One full verification."""

    objects: int
    """Objects that were compared."""
    seconds: float
    """From its begin to its end, pauses included."""
    drifts: tuple[Drift, ...]


class NotReadyError(Exception):
    """A request before the first apply round; ``str()`` is one sentence."""


class VerificationLoop:
    """Verifies every interval and on request; other jobs have the loop between two slices."""

    def __init__(
        self,
        runner: Runner,
        apply: ApplyLoop,
        first_pass: FirstPass,
        options: ApplyOptions,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._runner = runner
        self._apply = apply
        self._first_pass = first_pass
        self._interval = options.verify_interval or None
        self._health = health.scope("verification")
        self._requested = asyncio.Event()
        self._requests: list[asyncio.Future[VerificationResult]] = []
        jobs.add("verification", self._run)

    async def request(self) -> VerificationResult:
        """Verify once more from now on. Raises `NotReadyError` before the first apply round."""
        if not self._first_pass.is_set():
            raise NotReadyError("nothing has been applied yet: not all sources have been read")
        request = asyncio.get_running_loop().create_future()
        self._requests.append(request)
        self._requested.set()
        result: VerificationResult = await request
        return result

    async def _run(self) -> None:
        await self._first_pass.wait()
        while True:
            try:
                async with asyncio.timeout(self._interval):
                    await self._requested.wait()
            except TimeoutError:
                pass
            self._requested.clear()
            requests, self._requests = self._requests, []
            try:
                async with contextlib.AsyncExitStack() as stack:
                    unread = await self._read_again(stack) if requests else []
                    result = await self._verify(unread)
            except BaseException:
                for request in requests:
                    request.cancel()
                raise
            for request in requests:
                if not request.done():
                    request.set_result(result)

    async def _read_again(self, stack: contextlib.AsyncExitStack) -> list[Drift]:
        """Read all targets for this verification; returns the targets that cannot be read."""
        unread = []
        for queue in self._runner.queues:
            try:
                await stack.enter_async_context(queue.reconciler.read_again())
            except ReconcileError as error:
                unread.append(Drift(queue.name, "*", error=str(error)))
        return unread

    async def _verify(self, unread: list[Drift]) -> VerificationResult:
        began = time.perf_counter()
        verification = Verification(self._runner, asyncio.get_running_loop().time)
        drifts = unread
        for outcome in verification.slices():
            for drift in outcome:
                self._log(drift, len(drifts))
                drifts.append(drift)
            await asyncio.sleep(SLICE_SECONDS)
        seconds = time.perf_counter() - began
        if any(drift.error is not None for drift in drifts):
            self._apply.report()
            self._apply.wake()
        self._report(drifts, verification.objects, seconds)
        return VerificationResult(verification.objects, seconds, tuple(drifts))

    def _log(self, drift: Drift, number: int) -> None:
        if number >= MAX_LOGGED or not drift.parts:
            # An object that could not be compared has a status with the error, which is logged.
            return
        log.warning(
            "the speaker does not hold the intent",
            event_name="apply.drift",
            reconciler=drift.reconciler,
            object=drift.object,
            missing=drift.missing or None,
            unexpected=drift.unexpected or None,
            different=drift.different or None,
            details=", ".join(drift.details) or None,
            repaired=drift.error is None,
            reason=drift.error,
        )

    def _report(self, drifts: list[Drift], objects: int, seconds: float) -> None:
        if len(drifts) > MAX_LOGGED:
            log.warning(
                "more objects drifted than are logged one by one",
                event_name="apply.drift_more",
                objects=len(drifts) - MAX_LOGGED,
            )
        text = f"{counted(objects, 'object')} compared in {seconds:.2f} s"
        repaired = [drift for drift in drifts if drift.error is None]
        failed = [drift for drift in drifts if drift.error is not None]
        if repaired:
            text += f"; drifted and repaired: {_names(repaired)}"
        if failed:
            self._health.degraded(f"{text}; failed: {_names(failed)}: {failed[0].error}")
        else:
            self._health.ok(text)


class DriftMetrics:
    """The drift that verifications have found, read at each scrape."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def collect(self) -> list[Metric]:
        """Return the counter."""
        drift = CounterMetricFamily(
            "waggle_reconcile_drift",
            "Objects and routes that full verifications found to differ from the intent.",
            labels=["reconciler"],
        )
        for report in self._runner.reports():
            drift.add_metric([report.description.name], report.drifted)
        return [drift]


def _names(drifts: list[Drift]) -> str:
    first = drifts[0]
    return first_of(f"{first.reconciler} {first.object}", len(drifts))
