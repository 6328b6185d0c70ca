"""What the parts of the router's file have in common."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from speaker.api import InvalidConfig

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Asn = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]


class ConfigError(ValueError):
    """An invalid file; the text names the file and the key."""


_KEYS = {"peer_asn": "asn", "local_asn": "localASN", "enforce_first_as": "enforceFirstAS"}
"""Keys of the file that are not the field's name in camel case."""


def with_key(error: InvalidConfig) -> str:
    """Return the sentence of an error, with the key of the file in place of the speaker's field.

    The instance is the file, and a route has no name: the place before the sentence says which.
    """
    if error.kind == "instance" and error.field == "local_asn":
        return f"asn: {error.rule}"
    sentence = f"{key_of(error.field)}: {error.rule}"
    return f"{error.kind} {error.name!r}: {sentence}" if error.kind == "peer" else sentence


def key_of(field: str) -> str:
    """Return the key of the file for a field of the speaker, or a path of fields."""
    if field in _KEYS:
        return _KEYS[field]
    key = re.sub(r"_([a-z])", lambda match: match[1].upper(), field.rstrip("_"))
    return key.replace("Ipv", "IPv").replace("Id", "ID")


class Value(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Base of the structs of the file: keys in camel case, an unknown key is an error."""
