"""The status of one NodeConfig in the API server: written on change, at most once in `INTERVAL`.

The status is this agent's as a whole: what somebody else wrote into it goes. What is there is read
before the first write, and again now and then, as an API server may have been restored from an older
state. Nothing is held up by a write that fails; it is tried again after growing pauses.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, final

import msgspec
import structlog

from cells.hive import Health
from reconcilers import conditions
from reconcilers.report.node import with_times
from reconcilers.report.round import NodeStatus
from resources.cilium.status import NodeConfigStatus
from resources.kinds import NODE_CONFIG
from resources.kubernetes import Backoff, KubernetesError, Refused, Timing

INTERVAL: Final = 5.0
"""Seconds between two writes at the least."""
AGAIN: Final = 600.0
"""Seconds after which it is read again what is there."""
TIMING: Final = Timing(first=1.0, longest=60.0)
"""The pauses after failures."""
NOT_KNOWN: Final = "no CiliumBGPNodeConfig of this node is known"
NOT_THERE: Final = "there is no CiliumBGPNodeConfig of this node in the API server"

JsonObject = dict[str, Any]

log = structlog.get_logger("waggle.report")


class Objects(Protocol):
    """What is asked of an API server; `resources.kubernetes.Writer` does it."""

    async def get(self, path: str) -> JsonObject | None:
        """Return an object, or None where it is not there."""

    async def merge(self, path: str, content: JsonObject) -> JsonObject:
        """Set fields of an object."""


def path_of(node: str, *, status: bool = False) -> str:
    """Where an API server has a node's NodeConfig, or its status."""
    path = f"{NODE_CONFIG.path(NODE_CONFIG.versions[0])}/{node}"
    return f"{path}/status" if status else path


@final
class StatusWriting:
    """Keeps one NodeConfig's status as it should be; `step` does what is due."""

    def __init__(
        self,
        writer: Objects,
        rng: random.Random,
        health: Health,
        *,
        enabled: bool,
        failed: Callable[[], None],
        written: Callable[[], None],
    ) -> None:
        """Without ``enabled`` the status that is there is taken away, and none is written."""
        self._writer = writer
        self._backoff = Backoff(TIMING, rng)
        self._health = health
        self._enabled = enabled
        self._failed = failed
        self._written = written
        self._uid = ""
        self._there: JsonObject | None = None
        """The status as it is in the API server, as far as that is known."""
        self._read_at = 0.0
        self._ready_at = 0.0
        self._trouble = ""
        self.writes = 0

    async def step(self, row: NodeStatus | None) -> float | None:
        """Write if it is due; in how many seconds to look again, None where only a change can tell."""
        if row is None or not row.uid:
            self._uid, self._there = "", None
            # Without a row it may be that nothing has been read yet.
            self._tell(NOT_KNOWN if row is None else NOT_THERE)
            return None
        if row.uid != self._uid:
            self._uid, self._there = row.uid, None
        now = self._now()
        if now < self._ready_at:
            return self._ready_at - now
        try:
            return await (self._report(row) if self._enabled else self._clear(row.node))
        except KubernetesError as error:
            return self._note(row.node, error)

    async def _report(self, row: NodeStatus) -> float:
        there = self._there
        if there is None or self._now() >= self._read_at + AGAIN:
            there = await self._read(row.node)
            if there is None:
                return INTERVAL
        known = conditions.read({"status": there})
        wanted = _plain(with_times(row.status, known))
        if wanted != there:
            # What was there and is not any more has to be named in order to go.
            content = dict.fromkeys(there.keys() - wanted.keys()) | wanted
            await self._write(row.node, {"status": content}, wanted)
        self._tell(f"written {self.writes} times")
        return max(INTERVAL, self._read_at + AGAIN - self._now()) if wanted == there else INTERVAL

    async def _clear(self, node: str) -> float | None:
        there = self._there if self._there is not None else await self._read(node)
        if there is None:
            return INTERVAL
        if there:
            await self._write(node, {"status": None}, {})
        self._tell("switched off (--status-report=false); there is none")
        return None

    async def _read(self, node: str) -> JsonObject | None:
        """Read the status; None where there is no NodeConfig (any more)."""
        found = await self._asked("get", self._writer.get(path_of(node)))
        self._recovered()
        if found is None:
            self._there = None
            self._tell(NOT_THERE)
            return None
        status = found.get("status")
        self._there = status if isinstance(status, dict) else {}
        self._read_at = self._now()
        return self._there

    async def _write(self, node: str, content: JsonObject, wanted: JsonObject) -> None:
        await self._asked("patch", self._writer.merge(path_of(node, status=True), content))
        self._recovered()
        self._there = wanted
        self._ready_at = self._now() + INTERVAL
        self.writes += 1
        self._written()

    async def _asked(self, verb: str, request: Awaitable[JsonObject | None]) -> JsonObject | None:
        try:
            return await request
        except Refused as error:
            if error.status == 403:
                what = NODE_CONFIG.plural + ("/status" if verb == "patch" else "")
                text = f"may not {verb} {what}: {error.message}"
                raise Refused(error.status, text, error.retry_after) from None
            raise

    def _recovered(self) -> None:
        self._backoff.reset()
        if self._trouble:
            self._trouble = ""
            log.info("status is written again", event_name="report.recovered")

    def _note(self, node: str, error: KubernetesError) -> float:
        asked = error.retry_after if isinstance(error, Refused) else 0.0
        pause = max(INTERVAL, self._backoff.next(asked))
        self._ready_at = self._now() + pause
        # Whether it was done is not known, or somebody was faster.
        self._there = None
        self._failed()
        reason = str(error)
        if reason != self._trouble:
            self._trouble = reason
            log.warning(
                "status is not written",
                event_name="report.failed",
                object=f"{NODE_CONFIG.name}/{node}",
                reason=reason,
            )
        self._health.degraded(f"{NODE_CONFIG.name}/{node}: {reason}; it is tried again")
        return pause

    def _tell(self, text: str) -> None:
        self._health.ok(text)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _plain(status: NodeConfigStatus) -> JsonObject:
    """Spell a status as the API has it."""
    plain: JsonObject = msgspec.json.decode(msgspec.json.encode(status))
    return plain
