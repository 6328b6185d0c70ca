"""Answers of agents over pods/exec: without end, and in time."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from cells.api.pod_transport import Output
from cells.api.transport import AgentError


def after(seconds: float, monkeypatch: pytest.MonkeyPatch, *pieces: bytes | None) -> Output:
    """Return the output of a command that has ten seconds, and read it so many seconds later."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def wake(function: Callable[[], object]) -> None:
        function()

    output = Output(wake, 10.0)
    for piece in pieces:
        if piece is None:
            output.end(None)
        else:
            asyncio.run(output.put(piece))
    now[0] = seconds
    return output


def test_an_answer_without_end_is_read_for_six_times_the_time_of_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert after(59.0, monkeypatch, b"x", b"y").makefile("rb").read(1) == b"x"
    with pytest.raises(AgentError, match="no complete answer within 10 s"):
        after(61.0, monkeypatch, b"x", b"y").makefile("rb").read(1)


def test_a_silent_agent_has_the_time_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentError, match="no complete answer within 10 s"):
        after(10.0, monkeypatch).makefile("rb").read(1)


def test_an_answer_that_has_ended_is_read_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert after(99.0, monkeypatch, None).makefile("rb").read() == b""


@pytest.mark.parametrize(("seconds", "left"), [(4.0, 6.0), (10.0, 0.0), (11.0, 0.0)])
def test_a_read_waits_for_what_is_left_of_the_time(
    seconds: float, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def get(timeout: float) -> bytes:
        waited.append(timeout)
        raise queue.Empty

    output = after(seconds, monkeypatch)
    monkeypatch.setattr(output, "_pieces", SimpleNamespace(get=get))
    with pytest.raises(AgentError, match="no complete answer within 10 s"):
        output.makefile("rb").read(1)
    assert waited == [left]
