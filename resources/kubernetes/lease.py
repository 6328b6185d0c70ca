"""Leader election with a Lease (coordination.k8s.io/v1), by client-go's algorithm.

Pure: observed Leases and times in, Leases to write out. Clocks of different hosts are never compared: a
Lease has expired if this candidate has observed no change for its duration. The renew deadline is
shorter than that: a leader that cannot renew the Lease stops before another candidate can acquire it.
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
    """Validity of a Lease without renewal."""
    renew: float = 10.0
    """Time without a renewal after which the leader stops."""
    retry: float = 2.0
    """Between two attempts to acquire or renew it."""


def lease_path(namespace: str, name: str = "") -> str:
    """Return the URL path of a Lease, or of their collection."""
    root = f"/apis/{API_VERSION}/namespaces/{namespace}/leases"
    return f"{root}/{name}" if name else root


def _time(unix: float) -> str:
    """Format a metav1.MicroTime."""
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
        """The identity of the present holder; empty without one."""

    @property
    def leads(self) -> bool:
        """True if this candidate holds the Lease; valid only while `lost` is false."""
        return self._renewed_at is not None

    def lost(self, now: float) -> bool:
        """True if this candidate held the Lease and may not hold it any more."""
        if self._renewed_at is None:
            return False
        return self.leader != self.identity or now - self._renewed_at >= self.timing.renew

    def left(self, now: float) -> float:
        """Return the timeout of an attempt, in seconds: at most what is left of our own Lease.

        At most half of the renew deadline, so that an attempt on a half-open connection leaves time for
        another attempt.
        """
        most = self.timing.renew / 2
        if self._renewed_at is None:
            return most
        return min(most, max(0.0, self._renewed_at + self.timing.renew - now))

    def observe(self, lease: JsonObject | None, now: float) -> None:
        """Process the Lease in the API server, or None without one; ``now`` is monotonic."""
        spec = _spec(lease)
        if lease is None or spec != _spec(self._seen) or self._seen is None:
            self._seen_at = now
        self._seen = lease
        self.leader = str(spec.get("holderIdentity") or "")

    def attempt(self, now: float, unix: float) -> JsonObject | None:
        """Return the Lease to write to acquire or renew it; None while another candidate holds it.

        It has the observed resource version, so that a concurrent write is a conflict.
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
        """Process the response to a write of the Lease from ``now``: it is valid from then."""
        self.observe(lease, now)
        if self.leader == self.identity:
            self._renewed_at = now

    def release(self, unix: float) -> JsonObject | None:
        """Return the Lease to write to release it; None if this candidate does not hold it."""
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
