"""The job that keeps a Lease: leadership comes, is renewed, and its loss ends the process.

A process that has lost the leadership ends: its state is from the time when it led. Its supervisor (a
kubelet) starts another. An orderly stop releases the Lease, so that the next leader need not wait for
its expiry.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog

from cells.hive import Health
from cells.operator.owner import Owner
from resources.kubernetes import Election, KubernetesError, Writer, lease_path

RELEASE_TIMEOUT = 1.0

log = structlog.get_logger("waggle.operator")


class LostLeadershipError(Exception):
    """The Lease could not be renewed in time, or another candidate holds it."""


class Leadership:
    """The Lease of one candidate."""

    def __init__(
        self,
        election: Election,
        namespace: str,
        name: str,
        owner: Owner,
        health: Health,
        lost: Callable[[Exception], None],
    ) -> None:
        self._owner = owner
        self._election = election
        self.namespace = namespace
        """Of the Lease."""
        self._list = lease_path(namespace)
        self._path = lease_path(namespace, name)
        self._health = health
        self._lost = lost
        self._trouble = ""
        self._reported: tuple[str, str] | None = None
        self.gained = asyncio.Event()
        """Set for as long as we lead."""

    @property
    def leads(self) -> bool:
        """Whether we may write now."""
        now = asyncio.get_running_loop().time()
        return self._election.leads and not self._election.lost(now)

    async def run(self, writer: Writer) -> None:
        """Try to lead, and go on leading, until cancelled or lost."""
        election = self._election
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._attempt(writer)
                if election.lost(loop.time()):
                    self.gained.clear()
                    whose = election.leader if election.leader != election.identity else ""
                    reason = f"{whose} leads" if whose else self._trouble
                    self._health.degraded(f"lost the leadership: {reason}")
                    self._lost(LostLeadershipError(f"lost the leadership: {reason}"))
                    return
                if election.leads:
                    self.gained.set()
                self._report()
                await asyncio.sleep(election.timing.retry)
        finally:
            if self.leads:
                self.gained.clear()
                await self._release(writer)

    async def _attempt(self, writer: Writer) -> None:
        election = self._election
        loop = asyncio.get_running_loop()
        try:
            # No longer than our Lease is valid.
            async with asyncio.timeout(election.left(loop.time())):
                began = loop.time()
                lease = await writer.get(self._path)
                election.observe(lease, loop.time())
                content = election.attempt(loop.time(), time.time())
                if content is not None:
                    content["metadata"]["ownerReferences"] = await self._owner.references(writer)
                if content is None:
                    pass
                elif lease is None:
                    election.written(await writer.create(self._list, content), began)
                else:
                    election.written(await writer.replace(self._path, content), began)
            self._trouble = ""
        except TimeoutError:
            # The error of an earlier attempt is more precise.
            self._trouble = self._trouble or "no answer in time"
        except KubernetesError as error:
            # Also 409, where another candidate was faster: seen with the next attempt.
            self._trouble = str(error)

    def _report(self) -> None:
        leader = self._election.leader
        state = (leader, self._trouble)
        if state == self._reported:
            return
        self._reported = state
        state_text = "leads" if self._election.leads else f"waits; {leader or 'no candidate'} leads"
        if self._trouble:
            self._health.degraded(f"{state_text}: {self._trouble}")
        else:
            self._health.ok(state_text)
        log.info(
            "leader election",
            event_name="operator.leader",
            leader=leader or None,
            leads=self._election.leads,
            reason=self._trouble or None,
        )

    async def _release(self, writer: Writer) -> None:
        election = self._election
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT):
                # An attempt that was cut short may have renewed it all the same.
                lease = await writer.get(self._path)
                election.observe(lease, asyncio.get_running_loop().time())
                content = election.release(time.time())
                if content is not None:
                    content["metadata"]["ownerReferences"] = await self._owner.references(writer)
                    await writer.replace(self._path, content)
        except (KubernetesError, TimeoutError) as error:
            log.warning("lease not released", event_name="operator.lease", reason=str(error))
