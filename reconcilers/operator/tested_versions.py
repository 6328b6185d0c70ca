"""Holds the programs that a dialect relies on against the versions that it is tested with.

An example is the program that assigns the advertised addresses. Its version is that of its image;
of its definitions, the versions of the API that are served.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from reconcilers.dialect import Companion, Dialect
from resources.kubernetes import StatusError, Writer

DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
REFUSED: Final = (403, 404)
"""HTTP statuses of what may not be read, or does not exist: nothing is known then."""
_TAG: Final = re.compile(r":v?(\d+)\.(\d+)[^/:@]*(@[^/]*)?$")


class Untested(msgspec.Struct, frozen=True, order=True):
    """A version outside of the range that a dialect is tested with."""

    dialect: str
    message: str


async def untested_versions(writer: Writer, dialects: Sequence[Dialect]) -> list[Untested]:
    """Return which programs are not of the tested versions, by dialect.

    Raises `KubernetesError`.
    """
    companions = [
        (dialect.name, companion) for dialect in dialects for companion in dialect.each(Companion)
    ]
    if not companions:
        return []
    served = await _served(writer)
    untested: set[Untested] = set()
    for dialect, companion in companions:
        untested.update(Untested(dialect, text) for text in definition_doubts(companion, served))
        for labels in companion.labels:
            parameters = (("labelSelector", labels), ("limit", "1"))
            for item in (await _read(writer, DEPLOYMENTS, *parameters)).get("items") or ():
                text = image_doubt(companion, item)
                if text:
                    untested.add(Untested(dialect, text))
    return sorted(untested)


def definition_doubts(companion: Companion, served: frozenset[str]) -> list[str]:
    """Return a sentence for each tested version of a definition that is not served.

    ``served`` are group/version.
    """
    groups = {name.partition("/")[0] for name in served}
    return [
        f"the API server serves {kind.plural}.{kind.group} without version {kind.versions[0]}, which "
        f"the definitions of {companion.name} have"
        for kind in companion.kinds
        if kind.group in groups and kind.api_versions[0] not in served
    ]


def image_doubt(companion: Companion, deployment: dict[str, Any]) -> str:
    """Return a sentence if a Deployment's image is of an untested version; else an empty text."""
    spec = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    first, last = companion.tested
    for container in spec.get("containers") or ():
        if container.get("name") != companion.container:
            continue
        image = str(container.get("image", ""))
        tag = _TAG.search(image)
        if tag is not None and not first <= (int(tag[1]), int(tag[2])) <= last:
            tested = " to ".join(".".join(map(str, version)) for version in companion.tested)
            return f"{companion.name} is {image}; tested are versions {tested}"
    return ""


async def _served(writer: Writer) -> frozenset[str]:
    try:
        return await writer.served_versions()
    except StatusError as error:
        if error.status in REFUSED:
            return frozenset()
        raise


async def _read(writer: Writer, path: str, *parameters: tuple[str, str]) -> dict[str, Any]:
    try:
        return await writer.get(path, parameters) or {}
    except StatusError as error:
        if error.status in REFUSED:
            return {}
        raise
