"""Monitoring stations (BMP): their addresses, the routes they are sent, and their connections.

Frozen values without any work. RFC 7854, with Loc-RIB (RFC 9069) and Adj-RIB-Out (RFC 8671).
"""

from __future__ import annotations

import ipaddress
from typing import Literal, get_args

import msgspec

from speaker.api.config import InvalidConfig

BMP_PORT = 11019

Monitor = Literal["pre-policy", "post-policy", "loc-rib", "adj-rib-out"]
"""The routes to export: Adj-RIB-In before and after the import policy (RFC 7854), Loc-RIB (RFC 9069),
Adj-RIB-Out after the export policy (RFC 8671)."""


class BmpCollector(msgspec.Struct, frozen=True, kw_only=True):
    """One monitoring station, to connect to. Times are whole seconds."""

    name: str
    address: str
    port: int = BMP_PORT
    local_address: str | None = None
    monitor: tuple[Monitor, ...] = ("pre-policy",)
    statistics_interval: int = 60
    """Seconds between Statistics Reports; 0 sends none."""
    retry_time: int = 30
    """The first pause after a failed connection; each further failure doubles it (RFC 7854 section
    3.2)."""
    longest_retry_time: int = 720
    queue_limit: int = 64 * 1024 * 1024
    """Octets that may wait for a station; beyond them it is disconnected, and gets all tables when
    it is connected again."""
    system_name: str = "waggle"
    """sysName of the Initiation (RFC 7854 section 4.3)."""
    system_description: str = "Waggle"

    def __post_init__(self) -> None:
        """Reject an invalid configuration. Raises `InvalidConfig`."""
        for field in ("address", "local_address"):
            text = getattr(self, field)
            if text is None:
                continue
            try:
                ipaddress.ip_address(text)
            except ValueError:
                raise self._invalid(field, f"{text!r} is not an IP address") from None
        for field, low, high in (
            ("port", 1, 65535),
            ("statistics_interval", 0, 86400),
            ("retry_time", 1, 86400),
            ("longest_retry_time", 1, 86400),
            ("queue_limit", 64 * 1024, 1 << 40),
        ):
            value = getattr(self, field)
            if not low <= value <= high:
                raise self._invalid(field, f"{value} is not within {low} to {high}")
        for monitor in self.monitor:
            if monitor not in get_args(Monitor):
                raise self._invalid("monitor", f"{monitor!r} is none of {get_args(Monitor)}")

    def _invalid(self, field: str, rule: str) -> InvalidConfig:
        return InvalidConfig("collector", self.name, field, rule)


class CollectorStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One monitoring station's connection; the encoded names are used by the local API."""

    name: str
    address: str
    port: int
    connected: bool
    reason: str = ""
    """Why it is not connected; empty when it is."""
    since: float = msgspec.field(name="sinceTime")
    """When it was connected or lost, as Unix time."""
    synchronized: bool
    """Whether all tables have been sent."""
    retry_in: float | None = msgspec.field(name="retrySeconds")
    octets_sent: int
    """On this connection."""
    queued_octets: int
    connections: int
    """Number of connections so far; each one got all tables."""


class CollectorChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A monitoring station was connected, or lost."""

    name: str
    address: str
    port: int
    connected: bool
    reason: str
