"""Finds other implementations of an enabled dialect that run in the same cluster.

Two speakers with one configuration open two sessions to each router. A DaemonSet with ready pods is
taken as proof that a rival runs (`reconcilers.dialect.Rival`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from reconcilers.dialect import Dialect, Rival
from resources.kubernetes import StatusError, Writer
from resources.manifests.yamlfile import YamlError, parse_yaml

DAEMON_SETS = "/apis/apps/v1/daemonsets"
REFUSED = (403, 404)
"""HTTP statuses of what may not be read, or does not exist: no proof."""


class RunningRival(msgspec.Struct, frozen=True):
    """A rival that runs."""

    dialect: str
    rival: Rival
    namespace: str
    name: str
    """Of its DaemonSet."""

    @property
    def message(self) -> str:
        """A sentence about the running rival and the remedy, for people."""
        text = (
            f"{self.rival.name} runs beside this dialect (DaemonSet {self.namespace}/{self.name}): "
            "both open a session to each router"
        )
        remedy = "remove it"
        if self.rival.config_map is not None and self.rival.config_entry is not None:
            key, value = self.rival.config_entry
            where = f"ConfigMap {self.rival.config_map}"
            if self.rival.config_paths:
                key, where = self.rival.config_paths[0], f"{key} of {where}"
            remedy = f"unset {key}={value} in {where} and restart it"
        return f"{text}; {remedy}, or switch this dialect off (--disable-cell {self.dialect})"


async def running_rivals(writer: Writer, dialects: Sequence[Dialect]) -> list[RunningRival]:
    """Return the rivals of dialects that run in the cluster. Raises `KubernetesError`."""
    rivals = []
    for dialect in dialects:
        for rival in dialect.each(Rival):
            metadata = await _daemon_set(writer, rival)
            if metadata is not None and await _is_configured(writer, rival):
                namespace, name = metadata
                rivals.append(RunningRival(dialect.name, rival, namespace, name))
    return rivals


async def _daemon_set(writer: Writer, rival: Rival) -> tuple[str, str] | None:
    """Return namespace and name of the rival's DaemonSet, if it has ready pods."""
    daemon_sets = await _read(writer, DAEMON_SETS, ("labelSelector", rival.labels), ("limit", "1"))
    for item in (daemon_sets or {}).get("items") or ():
        if (item.get("status") or {}).get("numberReady", 0) > 0:
            metadata = item["metadata"]
            return str(metadata["namespace"]), str(metadata["name"])
    return None


async def _is_configured(writer: Writer, rival: Rival) -> bool:
    """True if the rival speaks BGP: its ConfigMap has the entry, or it needs none."""
    if rival.config_map is None or rival.config_entry is None:
        return True
    namespace, _, name = rival.config_map.partition("/")
    config = await _read(writer, f"/api/v1/namespaces/{namespace}/configmaps/{name}") or {}
    key, value = rival.config_entry
    entry = (config.get("data") or {}).get(key)
    if rival.config_paths and isinstance(entry, str):
        entry = _in_file(entry, rival.config_paths)
    return bool(entry == value)


def _in_file(text: str, paths: Sequence[str]) -> str | None:
    """Return the first value that a file in YAML has of these paths, as text; None without one."""
    try:
        content = next((document.value for document in parse_yaml(text.encode())), None)
    except YamlError:
        return None
    for path in paths:
        value = content
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            return str(value).lower() if isinstance(value, bool) else str(value)
    return None


async def _read(writer: Writer, path: str, *parameters: tuple[str, str]) -> dict[str, Any] | None:
    try:
        return await writer.get(path, parameters)
    except StatusError as error:
        if error.status in REFUSED:
            return None
        raise
