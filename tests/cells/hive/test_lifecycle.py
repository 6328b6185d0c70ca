"""Hooks run in construction order and back, whatever one of them does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import structlog

from cells.hive.lifecycle import HookTimeoutError, Lifecycle
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
    lifecycle.append("slow", start=lambda: asyncio.sleep(3600), start_timeout=7)
    with pytest.raises(HookTimeoutError, match="slow did not start within 7 s"):
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
