"""Hooks run in construction order and back, whatever one of them does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
import structlog

from cells.hive.lifecycle import START_TIMEOUT, HookTimeoutError, Lifecycle
from tests.support import looptime


def noting(
    log: list[str], name: str, fail: Exception | None = None
) -> Callable[[], Awaitable[None]]:
    """Make a hook that notes that it ran, and perhaps fails."""

    async def hook() -> None:
        log.append(name)
        if fail is not None:
            raise fail

    return hook


def test_start_in_construction_order_and_stop_reversed() -> None:
    log: list[str] = []
    lifecycle = Lifecycle()
    for name in "abc":
        lifecycle.append(name, start=noting(log, f"+{name}"), stop=noting(log, f"-{name}"))

    async def scenario() -> None:
        await lifecycle.start()
        await lifecycle.stop()
        await lifecycle.stop()

    looptime.run(scenario())
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]


def test_a_failed_start_stops_what_had_started_and_nothing_else() -> None:
    log: list[str] = []
    lifecycle = Lifecycle()
    lifecycle.append("a", start=noting(log, "+a"), stop=noting(log, "-a"))
    broken = noting(log, "+b", OSError("port in use"))
    lifecycle.append("b", start=broken, stop=noting(log, "-b"))
    lifecycle.append("c", start=noting(log, "+c"), stop=noting(log, "-c"))
    with pytest.raises(OSError, match="port in use"):
        looptime.run(lifecycle.start())
    assert log == ["+a", "+b", "-a"]


def test_everything_is_reserved_before_anything_starts() -> None:
    log: list[str] = []
    lifecycle = Lifecycle()
    for name in "abc":
        lifecycle.append(
            name,
            reserve=noting(log, f"?{name}") if name != "b" else None,
            start=noting(log, f"+{name}") if name != "c" else None,
            stop=noting(log, f"-{name}"),
        )

    async def scenario() -> None:
        await lifecycle.start()
        await lifecycle.stop()

    looptime.run(scenario())
    assert log == ["?a", "?c", "+a", "+b", "-c", "-b", "-a"]


def test_what_comes_first_is_reserved_before_other_parts_and_stopped_in_its_turn() -> None:
    log: list[str] = []
    lifecycle = Lifecycle()
    for name in "abc":
        lifecycle.append(
            name, reserve=noting(log, name), stop=noting(log, f"-{name}"), first=name == "b"
        )

    async def scenario() -> None:
        await lifecycle.start()
        await lifecycle.stop()

    looptime.run(scenario())
    assert log == ["b", "a", "c", "-c", "-b", "-a"]


def test_a_program_that_is_refused_starts_nothing_and_gives_back_what_it_reserved() -> None:
    log: list[str] = []
    lifecycle = Lifecycle()
    lifecycle.append(
        "a", reserve=noting(log, "?a"), start=noting(log, "+a"), stop=noting(log, "-a")
    )
    lifecycle.append("b", start=noting(log, "+b"), stop=noting(log, "-b"))
    refused = noting(log, "?c", OSError("port in use"))
    lifecycle.append("c", reserve=refused, start=noting(log, "+c"), stop=noting(log, "-c"))
    with pytest.raises(OSError, match="port in use"):
        looptime.run(lifecycle.start())
    assert log == ["?a", "?c", "-a"]


def test_a_start_hook_that_hangs_is_named() -> None:
    lifecycle = Lifecycle()
    lifecycle.append("slow", start=lambda: asyncio.sleep(3600))
    with pytest.raises(HookTimeoutError, match=f"slow did not start within {START_TIMEOUT:g} s"):
        looptime.run(lifecycle.start())


def test_a_slow_hook_is_an_event_of_the_log() -> None:
    lifecycle = Lifecycle()
    lifecycle.append("slow", start=lambda: asyncio.sleep(2))
    with structlog.testing.capture_logs() as lines:
        looptime.run(lifecycle.start())
    (line,) = lines
    assert (line["event_name"], line["hook"], line["phase"]) == ("hive.slow_hook", "slow", "start")


def test_a_timeout_within_a_hook_is_not_the_limit_of_the_hook() -> None:
    lifecycle = Lifecycle()

    async def times_out() -> None:
        raise TimeoutError("the router did not answer")

    lifecycle.append("x", start=times_out)
    with pytest.raises(TimeoutError, match="the router did not answer"):
        looptime.run(lifecycle.start())


def test_stopping_continues_past_hooks_that_fail_or_hang() -> None:
    log: list[str] = []
    lifecycle = Lifecycle()
    lifecycle.append("first", stop=noting(log, "-first"))
    lifecycle.append("hangs", stop=lambda: asyncio.sleep(3600), stop_timeout=2)
    lifecycle.append("fails", stop=noting(log, "-fails", RuntimeError("no")))

    async def scenario() -> float:
        await lifecycle.start()
        began = asyncio.get_running_loop().time()
        await lifecycle.stop()
        return asyncio.get_running_loop().time() - began

    with structlog.testing.capture_logs() as lines:
        assert looptime.run(scenario()) == pytest.approx(2)
    assert log == ["-fails", "-first"]
    failed = [line for line in lines if line["event_name"] == "hive.stop_failed"]
    assert [(line["hook"], line["reason"]) for line in failed] == [
        ("fails", "no"),
        ("hangs", "timed out"),
    ]


def test_the_limits_of_hooks_are_a_minute_and_five_seconds() -> None:
    async def seconds(lifecycle: Lifecycle) -> float:
        began = asyncio.get_running_loop().time()
        with contextlib.suppress(HookTimeoutError):
            await lifecycle.start()
        await lifecycle.stop()
        return asyncio.get_running_loop().time() - began

    starting, stopping = Lifecycle(), Lifecycle()
    starting.append("x", start=lambda: asyncio.sleep(3600))
    stopping.append("x", stop=lambda: asyncio.sleep(3600))
    with structlog.testing.capture_logs() as lines:
        assert looptime.run(seconds(starting)) == 60
        assert looptime.run(seconds(stopping)) == 5
    failed, slow = lines
    assert (failed["event_name"], failed["hook"]) == ("hive.stop_failed", "x")
    assert failed["reason"] == "timed out"
    assert (slow["phase"], slow["hook"], slow["seconds"]) == ("stop", "x", 5)


@pytest.mark.parametrize(("seconds", "is_slow"), [(1.0, False), (1.5, True)])
def test_a_hook_is_slow_after_a_second(seconds: float, *, is_slow: bool) -> None:
    lifecycle = Lifecycle()
    lifecycle.append("x", reserve=lambda: asyncio.sleep(seconds))
    with structlog.testing.capture_logs() as lines:
        looptime.run(lifecycle.start())
    assert [(line["phase"], line["seconds"]) for line in lines] == (
        [("reserve", seconds)] if is_slow else []
    )


@pytest.mark.parametrize(("error", "reason"), [(ValueError("no"), "no"), (KeyError(), "KeyError")])
def test_a_stop_hook_that_fails_is_logged_with_its_error(error: Exception, reason: str) -> None:
    lifecycle = Lifecycle()
    lifecycle.append("x", stop=noting([], "-x", error))

    async def scenario() -> None:
        await lifecycle.start()
        await lifecycle.stop()

    with structlog.testing.capture_logs() as lines:
        looptime.run(scenario())
    assert [line["reason"] for line in lines] == [reason]
