"""How the speaker is made, started and stopped within an agent."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NoOpTracerProvider

from cells.hive import HealthTree, StartError
from cells.hive.lifecycle import Lifecycle
from cells.options import SpeakerOptions
from cells.speaker import cell
from cells.speaker.cell import make_speaker
from cells.speaker.events import SpeakerEvents
from resources.trace_sampling import ROOTS
from tests.support import looptime


class Made:
    """In place of the speaker."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        self.given = given
        self.calls: list[object] = []
        self.error: OSError | None = None

    def reserve(self) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append("reserve")

    async def start(self, *, trace_received: float) -> None:
        self.calls.append(("start", trace_received))

    async def stop(self, *, timeout: float) -> None:  # noqa: ASYNC109 - the speaker's own
        self.calls.append(("stop", timeout))


@pytest.fixture(autouse=True)
def _made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "Speaker", Made)
    # Other tests of this process may have set one.
    monkeypatch.setattr(trace, "get_tracer_provider", NoOpTracerProvider)


def made(**options: Any) -> tuple[Made, Lifecycle, HealthTree, SpeakerEvents]:  # noqa: ANN401
    lifecycle, tree = Lifecycle(), HealthTree()
    health = tree.scope("speaker")
    events = SpeakerEvents(health)
    speaker: Any = make_speaker(lifecycle, health, events, SpeakerOptions(**options))
    return speaker, lifecycle, tree, events


def test_the_speaker_restarts_gracefully_and_publishes_its_events() -> None:
    speaker, _, _, events = made(record_file="/tmp/record", record_limit=3)  # noqa: S108
    assert speaker.given.pop("rng") is not None
    assert speaker.given == {
        "on_event": events.publish,
        "restarting": True,
        "record": Path("/tmp/record"),  # noqa: S108
        "record_limit": 3 * 1024 * 1024,
    }
    assert made()[0].given["record"] is None


def test_received_updates_are_drawn_as_other_traces_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", object)
    monkeypatch.setattr(ROOTS, "share", 0.01)
    speaker, lifecycle, _, _ = made()
    looptime.run(lifecycle.start())
    assert speaker.calls == ["reserve", ("start", 0.01)]


def test_it_is_reserved_started_and_stopped_with_the_agent() -> None:
    speaker, lifecycle, tree, _ = made()
    looptime.run(lifecycle.start())
    assert speaker.calls == ["reserve", ("start", 0.0)]

    def state() -> tuple[str, str]:
        (status,) = tree.report()
        return str(status.level), status.message

    assert state() == ("ok", "started")
    looptime.run(lifecycle.stop())
    assert speaker.calls[2:] == [("stop", 2.0)]
    assert state() == ("stopped", "all sessions closed")
    (entry,) = lifecycle._entries
    assert (entry.name, entry.stop_timeout) == ("speaker", 2.5)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EACCES, "Permission denied"), "permission denied"),
        (OSError("No room"), "no room"),
    ],
)
def test_a_record_that_cannot_be_written_refuses_the_start(error: OSError, reason: str) -> None:
    speaker, lifecycle, _, _ = made(record_file="/x/record")
    speaker.error = error
    with pytest.raises(StartError) as caught:
        looptime.run(lifecycle.start())
    assert str(caught.value) == f"--record-file: cannot record to /x/record: {reason}"
    assert speaker.calls == []
