"""What the parts of the router's file have in common."""

from __future__ import annotations

from typing import Annotated

import msgspec

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Asn = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]


class ConfigError(ValueError):
    """An invalid file; the text names the file and the key."""


class Value(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Base of the structs of the file: keys in camel case, an unknown key is an error."""
