"""The parts of every answer: the envelope, the base of the items, errors."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

import msgspec

API_VERSION = "cli.waggle/v1"

T = TypeVar("T")


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the items; members that are unset do not appear."""


class ErrorItem(Item, frozen=True, kw_only=True):
    """Why an answer is missing or partial."""

    code: str
    message: str
    node: str | None = None
    unknown: str | None = None
    """Of NotFound: ``peer``, ``instance`` or ``family`` where no such name exists."""


class Envelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True, rename="camel"):
    """A list with its version, kind and errors."""

    api_version: str = API_VERSION
    kind: str
    generated_at: datetime
    items: list[T]
    errors: list[ErrorItem] = []
    version: str | msgspec.UnsetType = msgspec.UNSET
    """Of the program that answers."""
    notes: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Possible reasons for an answer without items, a sentence each; absent where there is none."""
    truncated: bool | msgspec.UnsetType = msgspec.UNSET
    """True where there are more items than ``limit``; absent otherwise."""
    problems: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Why items are missing, a sentence each: invalid and unconfigured objects; or absent."""
