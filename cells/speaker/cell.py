"""The speaker cell: constructs the speaker from its options, with start and stop hooks."""

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
    """Construct the speaker and append its start and stop hooks."""
    # Jitter of timers and nothing secret: an ordinary generator is right.
    speaker = Speaker(
        rng=random.Random(),  # noqa: S311  jitter, no secret
        on_event=events.publish,
        # The kernel forwards the node's packets while the agent is down (RFC 4724, Restart State).
        # Whether an agent ran before is unknown; the bit is harmless for peers without its routes.
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
