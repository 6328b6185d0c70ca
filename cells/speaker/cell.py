"""The speaker, hooked into the start and stop of its process, and the cell that it is.

The only part that makes a speaker; how it is set comes from the options.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import msgspec

from cells.hive import Cell, Health, Lifecycle, Options, provide, setting
from cells.metrics import MetricsCollector
from cells.speaker.events import SpeakerEvents
from cells.speaker.metrics import SpeakerMetrics
from cells.speaker.sessions import Sessions
from speaker.api import SpeakerPort
from speaker.server import Speaker

STOP_TIMEOUT = 2.0
"""Seconds within which all sessions are closed."""


class SpeakerOptions(Options, frozen=True):
    """Options of the speaker cell."""

    record_file: Annotated[
        str | None,
        setting(
            "write every input of the speaker into this file, for waggle replay; none by default",
            flag="--record-file",
            metavar="PATH",
        ),
    ] = None
    record_limit: Annotated[
        int,
        msgspec.Meta(ge=1),
        setting("how large that file may become, in MiB", flag="--record-limit", metavar="MIB"),
    ] = 256


def make_speaker(
    lifecycle: Lifecycle, health: Health, events: SpeakerEvents, options: SpeakerOptions
) -> Speaker:
    """Make the speaker and hook its start and stop."""
    # Jitter of timers and nothing secret: an ordinary generator is right.
    speaker = Speaker(
        rng=random.Random(),  # noqa: S311  jitter, no secret
        on_event=events.publish,
        # A node's packets are forwarded by its kernel while the agent is away, and whether there
        # was an agent before nobody knows: peers that have nothing of ours lose nothing by it.
        restarting=True,
        record=None if options.record_file is None else Path(options.record_file),
        record_limit=options.record_limit * 1024 * 1024,
    )

    async def start() -> None:
        await speaker.start()
        health.ok("started")

    async def stop() -> None:
        await speaker.stop(timeout=STOP_TIMEOUT)
        health.stopped("all sessions closed")

    lifecycle.append("speaker", start=start, stop=stop, stop_timeout=STOP_TIMEOUT + 0.5)
    return speaker


CELL = Cell(
    name="speaker",
    description="Speaks BGP to the peers.",
    options=SpeakerOptions,
    provides=(SpeakerEvents, provide(make_speaker, as_=SpeakerPort), Sessions),
    invokes=(make_speaker, Sessions),
    contributes=(provide(SpeakerMetrics, as_=MetricsCollector),),
)
