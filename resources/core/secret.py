"""Secret (v1): values that no repr, log or trace shows."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import msgspec

from resources.errors import FieldError
from resources.meta import Resource
from resources.secret_value import SecretValue


class _Encoded(Resource, frozen=True):
    """A Secret in the API's form."""

    data: dict[str, str] = msgspec.field(default_factory=dict)
    string_data: dict[str, str] = msgspec.field(default_factory=dict)
    type: str = "Opaque"


class Secret(Resource, frozen=True):
    """One Secret, its values decoded and hidden."""

    data: dict[str, SecretValue] = msgspec.field(default_factory=dict)
    type: str = "Opaque"


def decode_secret(value: Any) -> Secret:  # noqa: ANN401  JSON
    """Decode a Secret of the API to a row; values that are not base64 are empty.

    Raises `msgspec.ValidationError`.
    """
    encoded = msgspec.convert(value, _Encoded)
    data = {}
    for key, text in encoded.data.items():
        try:
            data[key] = SecretValue(base64.b64decode("".join(text.split()), validate=True))
        except (binascii.Error, ValueError):
            data[key] = SecretValue(b"")
    # As in the API, the write-only field stringData precedes data.
    data |= {key: SecretValue(text.encode()) for key, text in encoded.string_data.items()}
    return Secret(metadata=encoded.metadata, data=data, type=encoded.type)


def secret_errors(value: Any) -> Iterator[FieldError]:  # noqa: ANN401  JSON
    """Check that the values of a Secret are base64; the values themselves are never shown."""
    data = value.get("data") or {}
    for key, text in data.items() if isinstance(data, dict) else ():
        try:
            base64.b64decode("".join(str(text).split()), validate=True)
        except (binascii.Error, ValueError):
            yield FieldError(f"data.{key}", "the value is not base64")


ENCODED = _Encoded
