"""The speaker cell: constructs the speaker from its options, with start and stop hooks."""

from __future__ import annotations

import random
from pathlib import Path

from opentelemetry import trace

from cells.hive import Health, StartError, Wiring, provide
from cells.hive.lifecycle import Lifecycle
from cells.observability.metrics import MetricsCollector
from cells.options import SpeakerOptions
from cells.speaker.events import SpeakerEvents
from cells.speaker.metrics import SpeakerMetrics
from cells.speaker.sessions import Sessions
from resources.trace_sampling import ROOTS
from speaker.api import SpeakerPort
from speaker.server import Speaker

STOP_TIMEOUT = 2.0
"""Seconds within which all sessions are closed."""


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

    async def reserve() -> None:
        try:
            speaker.reserve()
        except OSError as error:
            why = error.strerror or str(error)
            raise StartError(
                f"--record-file: cannot record to {options.record_file}: {why[:1].lower()}{why[1:]}"
            ) from None

    async def start() -> None:
        await speaker.start(trace_received=_received_share())
        health.ok("started")

    async def stop() -> None:
        await speaker.stop(timeout=STOP_TIMEOUT)
        health.stopped("all sessions closed")

    lifecycle.append(
        "speaker", reserve=reserve, start=start, stop=stop, stop_timeout=STOP_TIMEOUT + 0.5
    )
    return speaker


def _received_share() -> float:
    """Return the part of the received UPDATEs that have a span; none where spans are not exported.

    The cells that export or keep spans start before this one.
    """
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return 0.0
    return ROOTS.share


WIRING = Wiring(
    provides=(SpeakerEvents, provide(make_speaker, as_=SpeakerPort), Sessions),
    invokes=(make_speaker, Sessions),
    contributes=(provide(SpeakerMetrics, as_=MetricsCollector),),
)
