"""Leader election by a Lease (coordination.k8s.io/v1), as the ecosystem does it.

Pure: what a candidate sees and when, what it writes. Clocks of different machines are never
compared: a Lease is over when it has not changed for its duration while *we* were watching it. Who
cannot renew it for the renew deadline, which is shorter, has lost it before another can have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias, final

import msgspec

JsonObject: TypeAlias = dict[str, Any]

API_VERSION = "coordination.k8s.io/v1"


class ElectionTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; client-go's defaults."""

    lease: int = 15
    """How long a Lease lasts that is not renewed."""
    renew: float = 10.0
    """For how long renewing may fail before the leader gives up."""
    retry: float = 2.0
    """Between two attempts to get or to renew it."""


def lease_path(namespace: str, name: str = "") -> str:
    """Where an API server has a Lease, or the list of them."""
    root = f"/apis/{API_VERSION}/namespaces/{namespace}/leases"
    return f"{root}/{name}" if name else root


def _time(unix: float) -> str:
    """Spell a metav1.MicroTime."""
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@final
class Election:
    """One candidate."""

    def __init__(
        self,
        identity: str,
        name: str,
        namespace: str,
        timing: ElectionTiming = ElectionTiming(),  # noqa: B008  frozen
    ) -> None:
        self.identity = identity
        self.timing = timing
        self._name = name
        self._namespace = namespace
        self._seen: JsonObject | None = None
        self._seen_at = float("-inf")
        self._renewed_at: float | None = None
        self.leader = ""
        """Who has it, as far as is known; empty for nobody."""

    @property
    def leads(self) -> bool:
        """Whether we have it. Ask `lost`, too, before acting on it."""
        return self._renewed_at is not None

    def lost(self, now: float) -> bool:
        """Tell whether a Lease that we had is ours no longer, or may not be."""
        if self._renewed_at is None:
            return False
        return self.leader != self.identity or now - self._renewed_at >= self.timing.renew

    def left(self, now: float) -> float:
        """Return the seconds that an attempt may take, with what is left of a Lease that we have.

        Half of the time to renew at the most: one that hangs, as a connection did that died half,
        leaves time for another.
        """
        most = self.timing.renew / 2
        if self._renewed_at is None:
            return most
        return min(most, max(0.0, self._renewed_at + self.timing.renew - now))

    def observe(self, lease: JsonObject | None, now: float) -> None:
        """Take what the API server says of the Lease; None: there is none. ``now`` is monotonic."""
        spec = _spec(lease)
        if lease is None or spec != _spec(self._seen) or self._seen is None:
            self._seen_at = now
        self._seen = lease
        self.leader = str(spec.get("holderIdentity") or "")

    def attempt(self, now: float, unix: float) -> JsonObject | None:
        """Return the Lease to write so that it is ours for longer; None while another has it.

        It has the resource version of what was seen: a write of somebody else comes first then.
        """
        spec = _spec(self._seen)
        duration = spec.get("leaseDurationSeconds")
        lasts = duration if isinstance(duration, int) else self.timing.lease
        ours = self.leader == self.identity
        if self.leader and not ours and now - self._seen_at < lasts:
            return None
        transitions = spec.get("leaseTransitions")
        count = transitions if isinstance(transitions, int) else 0
        acquired = spec.get("acquireTime") if ours else None
        return self._lease(
            {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self.timing.lease,
                "acquireTime": acquired or _time(unix),
                "renewTime": _time(unix),
                "leaseTransitions": count if ours or self._seen is None else count + 1,
            }
        )

    def written(self, lease: JsonObject, now: float) -> None:
        """Take the answer to a write that began at ``now``: it is ours from then on."""
        self.observe(lease, now)
        if self.leader == self.identity:
            self._renewed_at = now

    def release(self, unix: float) -> JsonObject | None:
        """Return the Lease to write so that another can have it at once; None: it is not ours."""
        if not self.leads or self.leader != self.identity:
            return None
        spec = _spec(self._seen)
        return self._lease(
            {**spec, "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _time(unix)}
        )

    def _lease(self, spec: JsonObject) -> JsonObject:
        metadata: JsonObject = {"name": self._name, "namespace": self._namespace}
        if self._seen is not None:
            seen = self._seen.get("metadata")
            if isinstance(seen, dict) and "resourceVersion" in seen:
                metadata["resourceVersion"] = seen["resourceVersion"]
        return {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}


def _spec(lease: Mapping[str, Any] | None) -> JsonObject:
    spec = lease.get("spec") if lease else None
    return dict(spec) if isinstance(spec, dict) else {}
