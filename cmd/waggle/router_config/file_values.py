"""Values that the parts of the router's file have in common."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from speaker.api import InvalidConfig
from speaker.nlri import Family

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Asn = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]


class ConfigError(ValueError):
    """An invalid file; each sentence names the file and the key."""

    def __init__(self, *sentences: str) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


_KEYS = {
    "peer_asn": "asn",
    "local_asn": "localASN",
    "enforce_first_as": "enforceFirstAS",
    "allowas_in_origin": "allowASInOrigin",
    "allowas_in": "allowASIn",
}
"""Keys of the file that are not the field's name in camel case."""


def with_key(error: InvalidConfig) -> str:
    """Return the sentence of an error, with the key of the file in place of the speaker's field.

    The instance is the file, and a route has no name: the place before the sentence names it.
    """
    rule = re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", lambda match: key_of(match[0]), error.rule)
    if error.kind == "instance" and error.field == "local_asn":
        return f"asn: {rule}"
    sentence = f"{key_of(error.field)}: {rule}"
    return f"{error.kind} {error.name!r}: {sentence}" if error.kind == "peer" else sentence


def key_of(field: str) -> str:
    """Return the key of the file for a field of the speaker, or a path of fields."""
    if field in _KEYS:
        return _KEYS[field]
    key = re.sub(r"_([a-z])", lambda match: match[1].upper(), field.rstrip("_"))
    return key.replace("Ipv", "IPv").replace("Id", "ID")


def parse_family(text: str) -> Family:
    """Parse a family, ``ipv6-unicast`` or ``ipv6``. Raises ValueError."""
    return Family.parse(f"{text}-unicast" if text in ("ipv4", "ipv6") else text)


class Value(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Base of the structs of the file: keys in camel case, an unknown key is an error."""
