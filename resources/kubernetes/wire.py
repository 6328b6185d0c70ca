"""The envelopes of the API's answers: lists, watch events, Status; shapes only, no policy."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from resources.kubernetes.errors import Expired, KubernetesError, NotUnderstood, Refused
from resources.meta import Struct

T = TypeVar("T")

EXCERPT = 200
"""Characters shown of an answer that is not the API's."""


class ListMeta(Struct, frozen=True):
    """metav1.ListMeta."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int = 0
    """How many are on further pages, where the server says so."""


class List(Struct, frozen=True):
    """A page of a list. Go writes an empty list as null; one that is absent is no list."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None
    kind: str = ""


class GroupVersion(Struct, frozen=True):
    """metav1.GroupVersionForDiscovery."""

    group_version: str = ""


class Group(Struct, frozen=True):
    """metav1.APIGroup."""

    versions: tuple[GroupVersion, ...] = ()


class GroupList(Struct, frozen=True):
    """metav1.APIGroupList: the answer of ``/apis``."""

    groups: tuple[Group, ...] = ()


class WatchEvent(Struct, frozen=True):
    """metav1.WatchEvent."""

    type: str
    object: msgspec.Raw


class HeadMeta(Struct, frozen=True):
    """What of an object's metadata is looked at before its kind's own type is."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Head(Struct, frozen=True):
    """An object of any kind."""

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
    """Decode one document. Raises `NotUnderstood`."""
    try:
        return msgspec.json.decode(octets, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotUnderstood(f"sends {what} that is not understood: {error}") from None


def expired(status: Status) -> bool:
    """Whether a Status says that a version is no longer known."""
    return status.code == 410 or status.reason in ("Expired", "Gone")


def error_of(code: int, body: bytes, retry_after: str | None) -> KubernetesError:
    """Make an error of an answer with an HTTP status that is not 200."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = Status(message=excerpt(body))
    if code == 410 or expired(status):
        return Expired(_plain(status.message))
    wait = float(retry_after) if retry_after and retry_after.strip().isdecimal() else 0.0
    return Refused(code, _plain(status.message), wait or _wait(status))


def error_of_event(raw: msgspec.Raw) -> KubernetesError:
    """Make an error of an ERROR event."""
    status = decode(raw, Status, "a Status")
    if expired(status):
        return Expired(_plain(status.message))
    return Refused(status.code or 500, _plain(status.message), _wait(status))


def _wait(status: Status) -> float:
    return float(max(0, status.details.retry_after_seconds)) if status.details else 0.0


def excerpt(body: bytes) -> str:
    """Show the beginning of a text that is not the API's, on one line."""
    text = body[: EXCERPT * 4].decode("utf-8", "replace").strip()
    return "a web page" if text.lower().startswith(("<!doctype", "<html")) else _plain(text)


def _plain(text: str) -> str:
    """Put a foreign text on one line that does nothing to a terminal, and not a long one."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"
