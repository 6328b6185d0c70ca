"""An engine whose every input is recorded, with a checksum of its actions.

Costs a checksum of the actions and one line per input, and no disk access: lines go to a `Sink`,
which must not wait. The recording is bounded: it ends with an end line, and the engine continues
without it. It must never change what the engine does.
"""

from __future__ import annotations

import platform
import random
import zlib
from collections.abc import Sequence
from typing import Final, Protocol, final

import msgspec

from speaker.api import BestPathChange, Fault, RecordingEnded, Secret
from speaker.engine import Engine
from speaker.engine.inputs import Input, Shutdown
from speaker.peer.actions import Action, ReportEvent, SendBestPaths, Write
from speaker.recording.lines import (
    FORMAT,
    DigestLine,
    EndLine,
    Header,
    InputLine,
    Line,
    Passwords,
    encode,
    input_fields,
    rng_state,
)

DEFAULT_LIMIT: Final = 256 * 1024 * 1024
"""Octets of a recording."""
DIGEST_INPUTS: Final = 1000
"""A digest is due after this number of inputs, but at most once a second ..."""
DIGEST_SECONDS: Final = 60.0
"""... and after this time with any input."""
_LEAST_SECONDS: Final = 1.0


class Sink(Protocol):
    """The destination of lines."""

    def write(self, line: bytes) -> None:
        """Accept a line without waiting; a failure is shown by ``trouble``."""

    @property
    def trouble(self) -> str | None:
        """Why no further lines are accepted, or None."""


def checksum(actions: Sequence[Action]) -> str:
    """Return a checksum of the actions: eight hex digits, empty for none."""
    if not actions:
        return ""
    crc = 0
    known: dict[int, int] = {}
    for action in actions:
        if isinstance(action, Write):
            crc = zlib.crc32(b"%d,%d" % (action.connection, action.prefixes), crc)
            for part in action.parts:
                # All members of an update group are sent the same object.
                octets = known.get(id(part))
                if octets is None:
                    octets = known[id(part)] = zlib.crc32(part)
                crc = zlib.crc32(b"%d,%d" % (len(part), octets), crc)
        elif isinstance(action, SendBestPaths):
            crc = zlib.crc32(_best_paths(action), crc)
        else:
            crc = zlib.crc32(_plain(action), crc)
    return f"{crc:08x}"


def _plain(action: Action) -> bytes:
    if isinstance(action, ReportEvent):
        event = action.event
        if isinstance(event, Fault):
            # The text of an internal error may hold addresses of objects.
            return f"Fault {event.where}".encode()
        return type(event).__name__.encode() + msgspec.json.encode(event)
    return type(action).__name__.encode() + msgspec.json.encode(action, enc_hook=_hidden)


def _best_paths(action: SendBestPaths) -> bytes:
    parts = [b"%d" % action.reader]
    for item in action.items:
        parts.append(type(item).__name__.encode())
        if isinstance(item, BestPathChange):
            parts.append(msgspec.json.encode(item[:3]))
            parts += item.prefixes
    return b",".join(parts)


def _hidden(value: object) -> str:
    if isinstance(value, Secret):
        return "password"
    raise NotImplementedError(f"{type(value).__name__} is no part of an action")


@final
class Recorder:
    """Takes the engine's place towards the shell."""

    __slots__ = (
        "_digest_at",
        "_digest_due",
        "_engine",
        "_left",
        "_passwords",
        "_reported",
        "_seq",
        "_sink",
        "ended",
    )

    def __init__(
        self,
        engine: Engine,
        sink: Sink,
        *,
        rng: random.Random,
        now: float,
        started: float,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        """Record the header; the engine must not have processed any input yet.

        ``rng`` is the engine's, ``started`` Unix time at ``now`` (both in seconds), ``limit`` the
        octets of the file.
        """
        import importlib.metadata  # of a program that records alone: it imports archives and mail

        self._engine = engine
        self._sink = sink
        self._left = limit
        self._passwords = Passwords()
        self._seq = 0
        self._digest_due = DIGEST_INPUTS
        self._digest_at = now
        self._reported = False
        self.ended: str | None = None
        """Why the recording ended, or None."""
        self._write(
            Header(
                format=FORMAT,
                version=importlib.metadata.version("waggle-bgp"),
                python=platform.python_version(),
                started=started,
                now=now,
                rng=rng_state(rng),
                restarting=engine.restarting,
                max_queue=engine.max_queue,
            )
        )

    def handle(self, item: Input, now: float) -> list[Action]:
        """Process an input by `Engine.handle`, and record it."""
        recorded = self.ended is None
        actions = self._recorded(item, now) if recorded else self._engine.handle(item, now)
        if self.ended is not None and not self._reported:
            self._reported = True
            return [*actions, ReportEvent(RecordingEnded(reason=self.ended))]
        return actions

    def _recorded(self, item: Input, now: float) -> list[Action]:
        if isinstance(item, Shutdown):
            # Most of the state is gone after it.
            self._digest(now)
        # Before it is processed: the caller may change a mapping later.
        fields = input_fields(item, self._passwords)
        actions: list[Action] = []
        raised = ""
        try:
            actions = self._engine.handle(item, now)
        except Exception as error:
            raised = type(error).__name__
            raise
        finally:
            self._seq += 1
            self._write(
                InputLine(
                    seq=self._seq,
                    now=now,
                    input=type(item).__name__,
                    fields=fields,
                    out=checksum(actions),
                    raised=raised,
                )
            )
            self._digest_if_due(now)
            if self._sink.trouble is not None:
                self.ended = self._sink.trouble
            elif self._left <= 0:
                self._finish(now, "the recording has reached its limit")
        return actions

    def finish(self, now: float) -> None:
        """End the recording: there are no further inputs."""
        if self.ended is None:
            self._reported = True
            self._finish(now, "stopped")

    def _finish(self, now: float, reason: str) -> None:
        self._digest(now)
        self._write(EndLine(seq=self._seq, reason=reason))
        self.ended = reason

    def _digest_if_due(self, now: float) -> None:
        self._digest_due -= 1
        since = now - self._digest_at
        if since >= DIGEST_SECONDS or (self._digest_due <= 0 and since >= _LEAST_SECONDS):
            self._digest(now)

    def _digest(self, now: float) -> None:
        self._digest_due = DIGEST_INPUTS
        self._digest_at = now
        self._write(DigestLine(seq=self._seq, now=now, parts=self._engine.digest(now)))

    def _write(self, line: Line) -> None:
        octets = encode(line)
        self._left -= len(octets)
        self._sink.write(octets)
