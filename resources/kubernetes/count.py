"""Counts objects of kinds that are not read, by requests whose cost does not grow with the number.

Source: the Kubernetes API conventions: discovery (``/apis``), ``limit`` and ``remainingItemCount``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from resources.kind import Kind
from resources.kubernetes.errors import StatusError
from resources.kubernetes.writer import Writer

UNLISTED: Final = (403, 404)
"""HTTP statuses of a kind that may not be listed, or does not exist."""
FAILING: Final = 500
"""HTTP status of a kind whose stored objects cannot be read or converted."""

Counts = Mapping[tuple[str, str], int]
"""Objects by group and kind."""


async def count_objects(writer: Writer, kinds: Iterable[Kind[Any]], known: Counts) -> Counts:
    """Return the number of objects of each kind: the API server counts them.

    Kinds that the API server does not have, or that may not be listed, are omitted. A kind that the
    API server cannot read keeps its number of ``known``. Raises `KubernetesError` for every other
    failure.
    """
    counts: dict[tuple[str, str], int] = {}
    try:
        served = await writer.served_versions()
    except StatusError as error:
        if error.status not in UNLISTED:
            raise
        return counts
    for kind in kinds:
        version = next((v for v in kind.versions if f"{kind.group}/{v}" in served), None)
        if version is None:
            continue
        key = (kind.group, kind.name)
        try:
            counts[key] = await writer.count(kind.path(version))
        except StatusError as error:
            if error.status == FAILING and key in known:
                counts[key] = known[key]
            elif error.status not in (*UNLISTED, FAILING):
                raise
    return counts
