"""A recording played through the pure core: the same inputs at the same times, the same end.

No socket is opened and nothing is sent. Where the recording has noted a digest, the core's is
compared with it; the first difference is kept.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, final

import msgspec

from speaker.api import InvalidConfig, UnknownName
from speaker.engine import Engine
from speaker.engine.inputs import Input
from speaker.peer.actions import Action
from speaker.recording.digest import digest
from speaker.recording.lines import VERSION, BadRecording, Digest, Header, read


class Step(NamedTuple):
    """One input and what the core made of it."""

    sequence: int
    now: float
    item: Input
    actions: list[Action]


@final
class Replay:
    """One recording. Raises `BadRecording` where it is none."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = enumerate(lines, 1)
        header = self._header()
        self.header = header
        self.engine = Engine(
            random.Random(header.seed),  # noqa: S311  jitter, no secret
            max_queue=header.max_queue,
            restarting=header.restarting,
        )
        self.now = 0.0
        self.inputs = 0
        self.difference: str | None = None
        """Where the core first came to something else than when it was recorded."""
        self.end: str | None = None
        """Why the recording ended; None where its end is missing."""

    def _header(self) -> Header:
        number, line = next(self._lines, (1, b""))
        try:
            header = msgspec.json.decode(line, type=Header)
        except msgspec.DecodeError as error:
            raise BadRecording(number, f"not the beginning of a recording: {error}") from None
        if header.recording != VERSION:
            raise BadRecording(number, f"version {header.recording}, this program reads {VERSION}")
        return header

    def steps(self, until: int | None = None) -> Iterator[Step]:
        """Play, one input after the other, up to and with number ``until``.

        Raises `BadRecording`. A last line that is cut short is the end.
        """
        for number, line in self._lines:
            try:
                data = msgspec.json.decode(line, type=dict[str, Any])
            except msgspec.DecodeError as error:
                if line.endswith(b"\n"):
                    raise BadRecording(number, f"not JSON: {error}") from None
                return
            if "end" in data:
                self.end = str(data["end"])
                return
            if "digest" in data:
                self._compare(number, data)
                continue
            sequence = int(data.get("seq", 0))
            if until is not None and sequence > until:
                return
            item = read(number, data)
            self.now = float(data.get("now", self.now))
            self.inputs += 1
            yield Step(sequence, self.now, item, self._handle(item))

    def _handle(self, item: Input) -> list[Action]:
        try:
            return self.engine.handle(item, self.now)
        except (UnknownName, InvalidConfig):
            # Whoever gave the command was told so then.
            return []

    def _compare(self, number: int, data: dict[str, Any]) -> None:
        try:
            noted = msgspec.convert(data["digest"], Digest)
        except msgspec.ValidationError as error:
            raise BadRecording(number, f"digest: {error}") from None
        found = digest(self.engine, self.now)
        if self.difference is None and noted != found:
            self.difference = f"after input {data.get('seq')}: {_first_difference(noted, found)}"

    def run(self, until: int | None = None) -> None:
        """Play all of it."""
        for _ in self.steps(until):
            pass


def _first_difference(noted: Digest, found: Digest) -> str:
    pairs: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        (noted.peers, found.peers),
        (noted.tables, found.tables),
    )
    for before, after in pairs:
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                return f"{name} was {before.get(name)} and is {after.get(name)}"
    return "nothing"
