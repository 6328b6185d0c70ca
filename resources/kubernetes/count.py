"""Counts objects of kinds that are not read, by requests whose cost does not grow with the number.

Source: the Kubernetes API conventions: discovery (``/apis``), ``limit`` and ``remainingItemCount``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from resources.kind import Kind
from resources.kubernetes.errors import StatusError
from resources.kubernetes.writer import Writer

UNLISTED = (403, 404, 500)
"""HTTP statuses of a kind that may not be listed, does not exist, or cannot be converted."""


async def count_objects(writer: Writer, kinds: Iterable[Kind[Any]]) -> dict[tuple[str, str], int]:
    """Return the number of objects by group and kind.

    Kinds that the API server does not have, or that cannot be listed, are left out. Raises
    `KubernetesError` for every other failure.
    """
    found: dict[tuple[str, str], int] = {}
    try:
        served = await writer.served_versions()
        for kind in kinds:
            version = next((v for v in kind.versions if f"{kind.group}/{v}" in served), None)
            if version is not None:
                number = await _count(writer, kind.path(version))
                if number is not None:
                    found[kind.group, kind.name] = number
    except StatusError as error:
        if error.status not in UNLISTED:
            raise
    return found


async def _count(writer: Writer, path: str) -> int | None:
    try:
        return await writer.count(path)
    except StatusError as error:
        if error.status in UNLISTED:
            return None
        raise
