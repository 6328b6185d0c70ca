"""The timers of a neighbour."""

from __future__ import annotations

from typing import Final

from reconcilers.frrk8s.one_object.findings import Findings
from reconcilers.frrk8s.unit import NeighborKey
from reconcilers.frrk8s.values import NANOSECONDS
from resources.durations import parse_duration
from resources.errors import shortened
from resources.frrk8s.neighbor import Neighbor

HOLD_TIME: Final = 180
KEEPALIVE_TIME: Final = 60
CONNECT_TIME: Final = 60
"""Seconds, where a neighbour has none."""


def hold_and_keepalive(
    spec: Neighbor, key: NeighborKey, path: str, findings: Findings
) -> tuple[int, int]:
    """Return hold time and keepalive time in seconds."""
    if spec.hold_time is None and spec.keepalive_time is None:
        return HOLD_TIME, KEEPALIVE_TIME
    hold = _duration(spec.hold_time, key, f"{path}.holdTime", findings)
    keepalive = _duration(spec.keepalive_time, key, f"{path}.keepaliveTime", findings)
    if spec.hold_time is None or spec.keepalive_time is None:
        name, other = "holdTime", "keepaliveTime"
        if spec.hold_time is None:
            name, other = other, name
        findings.error(f"{path}.{name}", f"{key} has {name} without {other}")
    elif hold is not None and keepalive is not None:
        if not (0 <= hold < NANOSECONDS or 3 <= hold // NANOSECONDS <= 65535):
            text = f"{key}: {shortened(spec.hold_time)} is neither 0 nor 3 s to 65535 s"
            findings.error(f"{path}.holdTime", text)
        elif keepalive < 0 or keepalive > hold:
            text = f"{key}: {shortened(spec.keepalive_time)} is not from 0 to holdTime"
            findings.error(f"{path}.keepaliveTime", f"{text} ({shortened(spec.hold_time)})")
        return hold // NANOSECONDS, keepalive // NANOSECONDS
    return HOLD_TIME, KEEPALIVE_TIME


def _duration(text: str | None, key: NeighborKey, path: str, findings: Findings) -> int | None:
    """Return a duration in nanoseconds; None with an error, or without a text."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        findings.error(path, f"{key}: {error}")
        return None


def connect_time(spec: Neighbor, key: NeighborKey, path: str, findings: Findings) -> int:
    """Return the pause before the next attempt to connect, in seconds."""
    where = f"{path}.connectTime"
    time = _duration(spec.connect_time, key, where, findings)
    if time is None:
        return CONNECT_TIME
    if time % NANOSECONDS or not 1 <= time // NANOSECONDS <= 65535:
        text = f"{key}: {spec.connect_time!r} is not a whole number of seconds from 1 to 65535"
        findings.error(where, text)
    return time // NANOSECONDS
