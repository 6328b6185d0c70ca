"""Replays a recording: the same inputs to another engine, compared step by step.

The first difference is kept with its input; the replay continues, because the later steps may
explain it. Opens no connection and reads no clock: the time is the recording's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

from speaker.engine import Engine
from speaker.engine.inputs import Input
from speaker.peer.actions import Action
from speaker.recording.lines import (
    FORMAT,
    BadRecording,
    DigestLine,
    EndLine,
    Header,
    InputLine,
    Line,
    decode,
    read_input,
)
from speaker.recording.recorder import checksum


class Step(NamedTuple):
    """One input and its actions; ``error`` is what the engine raised."""

    seq: int
    now: float
    item: Input
    actions: list[Action]
    error: Exception | None


class Difference(NamedTuple):
    """The first difference from the recorded engine."""

    seq: int
    """The input after which the difference is visible."""
    since: int
    """The last input after which everything was equal."""
    input: str
    what: tuple[str, ...]
    """``actions``, ``error``, or parts of the state as in `speaker.engine.digest`."""

    def __str__(self) -> str:
        """Return the difference as text."""
        return f"after input {self.seq} ({self.input}): {', '.join(self.what)}"


@final
class Player:
    """Replays one recording; `play` may be called once."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Read the header. Raises `BadRecording`."""
        self._lines = iter(lines)
        self._number = 0
        self._ahead = next(self._lines, None)
        header = self._next()
        if header is None:
            raise BadRecording(1, "the file is empty")
        if not isinstance(header, Header):
            raise BadRecording(1, "a recording begins with its header")
        if header.format != FORMAT:
            raise BadRecording(
                1, f"format {header.format}, this version plays {FORMAT} (from {header.version})"
            )
        self.header = header
        try:
            rng = header.random()
        except ValueError as error:
            raise BadRecording(1, str(error)) from None
        self.engine = Engine(rng, max_queue=header.max_queue, restarting=header.restarting)
        self.now = header.now
        self.inputs = 0
        """Number of replayed inputs."""
        self.digests = 0
        """Number of compared digests."""
        self.difference: Difference | None = None
        """The first difference."""
        self.truncated = False
        """Whether the last line was cut off."""
        self.end: str | None = None
        """Why the recording ended, where it has an end line."""
        self._equal = 0
        self._last = ""

    def play(self, until: int | None = None) -> Iterator[Step]:
        """Replay the inputs, up to the one with number ``until``. Raises `BadRecording`."""
        while True:
            line = self._next()
            match line:
                case None:
                    return
                case InputLine():
                    if until is not None and line.seq > until:
                        return
                    if line.seq != self.inputs + 1:
                        raise BadRecording(
                            self._number, f"input {line.seq} follows input {self.inputs}"
                        )
                    yield self._step(line)
                case DigestLine():
                    self._compare(line)
                case EndLine(reason=reason):
                    self.end = reason
                    return
                case Header():
                    raise BadRecording(self._number, "another header")

    def _next(self) -> Line | None:
        """Return the next line; an unreadable last one was cut off."""
        line = self._ahead
        if line is None:
            return None
        self._ahead = next(self._lines, None)
        self._number += 1
        try:
            return decode(line, self._number)
        except BadRecording:
            if self._number == 1 or self._ahead is not None or line.endswith(b"\n"):
                raise
            self.truncated = True
            return None

    def _step(self, line: InputLine) -> Step:
        item = read_input(line, self._number)
        self.inputs, self.now, self._last = line.seq, line.now, line.input
        actions: list[Action] = []
        error: Exception | None = None
        try:
            actions = self.engine.handle(item, line.now)
        except Exception as raised:  # noqa: BLE001  an internal error may be the recorded one
            error = raised
        what = []
        if (type(error).__name__ if error is not None else "") != line.raised:
            what.append("error")
        if checksum(actions) != line.out:
            what.append("actions")
        self._judge(what)
        return Step(line.seq, line.now, item, actions, error)

    def _compare(self, line: DigestLine) -> None:
        if line.seq != self.inputs:
            raise BadRecording(
                self._number, f"a digest of input {line.seq} after input {self.inputs}"
            )
        self.digests += 1
        self.now = line.now
        mine = self.engine.digest(line.now)
        self._judge([part for part, value in line.parts.items() if value != mine.get(part)])

    def _judge(self, what: list[str]) -> None:
        if not what:
            self._equal = self.inputs
        elif self.difference is None:
            self.difference = Difference(self.inputs, self._equal, self._last, tuple(what))
