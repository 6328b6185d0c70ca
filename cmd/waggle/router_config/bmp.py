"""The BMP monitoring stations of the router's file."""

from __future__ import annotations

import socket

from speaker.api import BMP_PORT, BmpCollector, InvalidConfig, Monitor
from waggle.router_config.file_values import ConfigError, Value


class CollectorFile(Value, frozen=True):
    """One BMP monitoring station; see `speaker.api.BmpCollector`."""

    address: str
    port: int = BMP_PORT
    name: str | None = None
    local_address: str | None = None
    monitor: tuple[Monitor, ...] | None = None
    """Overrides `Bmp.monitor`."""
    retry_time: int = 30
    longest_retry_time: int = 720
    queue_limit: int = 64 * 1024 * 1024


class Bmp(Value, frozen=True):
    """BMP monitoring stations (RFC 7854)."""

    collectors: tuple[CollectorFile, ...] = ()
    monitor: tuple[Monitor, ...] = ("pre-policy", "post-policy", "loc-rib")
    statistics_interval: int = 60
    system_name: str | None = None
    """None: the host name."""
    system_description: str | None = None

    def settings(self, description: str) -> list[BmpCollector]:
        """Return the monitoring stations. Raises `ConfigError` naming the invalid one.

        ``description`` is that of the system, where the file has none.
        """
        collectors: dict[str, BmpCollector] = {}
        for place, entry in enumerate(self.collectors):
            name = entry.name or f"{entry.address} port {entry.port}"
            if name in collectors:
                raise ConfigError(f"bmp.collectors[{place}]: duplicate name {name}")
            monitor = self.monitor if entry.monitor is None else entry.monitor
            try:
                collectors[name] = BmpCollector(
                    name=name,
                    address=entry.address,
                    port=entry.port,
                    local_address=entry.local_address,
                    monitor=monitor,
                    statistics_interval=self.statistics_interval,
                    retry_time=entry.retry_time,
                    longest_retry_time=entry.longest_retry_time,
                    queue_limit=entry.queue_limit,
                    system_name=self.system_name or socket.gethostname(),
                    system_description=self.system_description or description,
                )
            except InvalidConfig as error:
                raise ConfigError(f"bmp.collectors[{place}]: {error}") from None
        return list(collectors.values())
