"""Keeps the last good state of a dialect over restarts.

One file for each dialect in the state directory, with its node and a checksum. A file that is damaged,
of another node or of a later release is not used, which health reports. No file has a password.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cells.hive import Group, Health
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.state.node import ThisNode
from cells.state.state_files import KeptValue, LogLines, StateDirectory
from reconcilers.dialect import Dialect, StoredState, extended
from resources.errors import INVALID_JSON
from resources.state_file import StateFileError

FORMAT: Final = "waggle-dialect-state/1"
LINES: Final = LogLines(
    "waggle.dialects",
    "the state of a dialect is not kept",
    "dialects.state-unusable",
    "dialects.state-unwritten",
)


class _Head(msgspec.Struct, frozen=True):
    """The first line of a file; the rest is the dialect's."""

    format: str
    node: str
    dialect: str
    crc32: int


class DialectStates:
    """The state of each dialect that has one."""

    def __init__(
        self,
        directory: StateDirectory,
        node: ThisNode,
        dialects: Group[Dialect],
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        self._node = node.name
        self.states: Mapping[str, Any] = {}
        """The memory of each dialect, by its name (`reconcilers.dialect.NodeContext.state`)."""
        self._kept = [
            self._keep(dialect, memory, directory, health, lifecycle, jobs)
            for dialect, memory in extended(dialects, StoredState)
        ]

    def _keep(
        self,
        dialect: Dialect,
        memory: StoredState,
        directory: StateDirectory,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> KeptValue[Any]:
        return KeptValue(
            f"{dialect.name}-state",
            directory.file(f"{dialect.name}.state", LINES),
            value=functools.partial(self._memory, dialect.name, memory),
            encode=functools.partial(self._encode, dialect.name, memory),
            take=functools.partial(self._take, dialect, memory),
            health=health.scope(dialect.name),
            lifecycle=lifecycle,
            jobs=jobs,
        )

    def keep(self, states: Mapping[str, Any]) -> None:
        """Write the states that changed: the dialects were compiled."""
        self.states = states
        for kept in self._kept:
            kept.check()

    def _memory(self, name: str, memory: StoredState) -> Any:  # noqa: ANN401
        state = self.states.get(name)
        return None if state is None else memory.of_state(state)

    def _encode(self, name: str, memory: StoredState, value: Any) -> bytes:  # noqa: ANN401
        return encode(memory.encode(value), self._node, name)

    def _take(self, dialect: Dialect, memory: StoredState, octets: bytes) -> None:
        state = memory.restore(dialect, decode(octets, self._node, dialect.name))
        self.states = {**self.states, dialect.name: state}


def encode(octets: bytes, node: str, dialect: str) -> bytes:
    """Return the content of a file with a dialect's state."""
    head = _Head(FORMAT, node, dialect, zlib.crc32(octets))
    return msgspec.json.encode(head) + b"\n" + octets


def decode(octets: bytes, node: str, dialect: str) -> bytes:
    """Return the dialect's part. Raises `StateFileError` for anything else than its own file."""
    line, end, rest = octets.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=_Head)
    except INVALID_JSON:
        raise StateFileError("it does not begin as it should") from None
    if head.format != FORMAT:
        raise StateFileError(f"it is of another format: {head.format[:64]!r}")
    if head.node != node:
        raise StateFileError(f"it is of another node: {head.node[:64]!r}")
    if head.dialect != dialect:
        raise StateFileError(f"it is of another dialect: {head.dialect[:64]!r}")
    if not end or head.crc32 != zlib.crc32(rest):
        raise StateFileError("its checksum differs")
    return rest
