"""The envelopes of the API's responses: lists, watch events and Status objects."""

from __future__ import annotations

from typing import Final, TypeVar

import aiohttp
import msgspec

from resources.errors import INVALID_JSON
from resources.kubernetes.connection import read_limited_body
from resources.kubernetes.errors import Expired, InvalidResponse, KubernetesError, StatusError
from resources.meta import Struct

T = TypeVar("T")

METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The Accept header of requests for the metadata of objects alone: of a watch, and of a list."""

ERROR_BODY = 64 << 10
"""Octets read of an error response."""
EXCERPT = 200
"""Characters shown of a response that is not one of the API."""


class ListMeta(Struct, frozen=True):
    """metav1.ListMeta."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int = 0
    """Objects on further pages, if the server reports the number."""


class List(Struct, frozen=True):
    """A page of a list. Go encodes an empty list as null; an absent one is an error."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None
    kind: str = ""
    api_version: str = ""


class GroupVersion(Struct, frozen=True):
    """metav1.GroupVersionForDiscovery."""

    group_version: str = ""


class Group(Struct, frozen=True):
    """metav1.APIGroup."""

    versions: tuple[GroupVersion, ...] = ()


class GroupList(Struct, frozen=True):
    """metav1.APIGroupList: the answer of ``/apis``."""

    groups: tuple[Group, ...] = ()


class APIResource(Struct, frozen=True):
    """metav1.APIResource."""

    name: str = ""
    """The plural, for subresources followed by a slash and their name."""


class ResourceList(Struct, frozen=True):
    """metav1.APIResourceList: the answer of ``/apis/GROUP/VERSION``."""

    resources: tuple[APIResource, ...] = ()


class WatchEvent(Struct, frozen=True):
    """metav1.WatchEvent."""

    type: str
    object: msgspec.Raw


class HeadMeta(Struct, frozen=True):
    """The metadata that is decoded before the object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Head(Struct, frozen=True):
    """An object of any kind; only its metadata."""

    metadata: HeadMeta = msgspec.field(default_factory=HeadMeta)


class StatusDetails(Struct, frozen=True):
    """metav1.StatusDetails."""

    retry_after_seconds: int = 0


class Status(Struct, frozen=True):
    """metav1.Status."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


def decode(octets: bytes | msgspec.Raw, shape: type[T], what: str) -> T:
    """Decode a response of the API server: one document. Raises `InvalidResponse`."""
    try:
        return msgspec.json.decode(octets, type=shape)
    except INVALID_JSON as error:
        raise InvalidResponse(f"sends {what} that is not understood: {error}") from None


async def check(response: aiohttp.ClientResponse) -> None:
    """Raise for an HTTP response that is an error, or not JSON."""
    if response.status != 200:
        body = await read_limited_body(response, ERROR_BODY)
        raise error_of(response.status, body, response.headers.get("Retry-After"))
    if response.content_type != "application/json":
        raise InvalidResponse(f"answers {response.content_type} instead of JSON")


def expired(status: Status) -> bool:
    """True if a response's Status reports that a resource version has expired."""
    return status.code == 410 or status.reason in ("Expired", "Gone")


def error_of(code: int, body: bytes, retry_after: str | None) -> KubernetesError:
    """Decode an HTTP response with a status other than 200 to its error."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except INVALID_JSON:
        status = Status(message=excerpt(body))
    if code == 410 or expired(status):
        return Expired(_plain(status.message))
    wait = float(retry_after) if retry_after and retry_after.strip().isdecimal() else 0.0
    return StatusError(code, _plain(status.message), wait or _wait(status))


def error_of_event(raw: msgspec.Raw) -> KubernetesError:
    """Decode the response's Status in an ERROR event of a watch to its error."""
    status = decode(raw, Status, "a Status")
    if expired(status):
        return Expired(_plain(status.message))
    return StatusError(status.code or 500, _plain(status.message), _wait(status))


def _wait(status: Status) -> float:
    return float(max(0, status.details.retry_after_seconds)) if status.details else 0.0


def excerpt(body: bytes) -> str:
    """Return the beginning of a response that is not one of the API, on one line."""
    text = body[: EXCERPT * 4].decode("utf-8", "replace").strip()
    return "a web page" if text.lower().startswith(("<!doctype", "<html")) else _plain(text)


def _plain(text: str) -> str:
    """Return a foreign text as one printable line of limited length."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"
