"""Secret octets within rows: compared by value, and never printed, logged, traced or stored.

A row of any kind may have a field of type `SecretValue`, a string in the API's JSON (a password that
is a field of an object). `Kind` decodes it with `decode_field`; a snapshot stores that there is one,
and reads back a value that is withheld, which nothing can open a session with.
"""

from __future__ import annotations

from typing import Any, Self, final


@final
class SecretValue:
    """Octets that no repr, log, trace or JSON shows; `reveal` is the only way to them."""

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets: bytes | None = octets

    @classmethod
    def withheld(cls) -> Self:
        """Return a secret value that exists and is not known: it was read from a snapshot."""
        value = cls(b"")
        value._octets = None
        return value

    @property
    def known(self) -> bool:
        """False for a secret value that is withheld."""
        return self._octets is not None

    def reveal(self) -> bytes:
        """Return the octets. Raises `LookupError` for a secret value that is withheld."""
        if self._octets is None:
            raise LookupError("the value is withheld")
        return self._octets

    def __repr__(self) -> str:
        """Hide the octets."""
        return "SecretValue(***)"

    def __eq__(self, other: object) -> bool:
        """Compare by value, so that a rotated password is a change; a withheld one equals none."""
        return isinstance(other, SecretValue) and self.known and other._octets == self._octets

    def __hash__(self) -> int:
        """Hash by value."""
        return hash(self._octets)


def decode_field(kind: type, value: Any) -> Any:  # noqa: ANN401
    """Decode a `SecretValue` from JSON; the ``dec_hook`` of msgspec. Raises `ValueError`."""
    if kind is not SecretValue:
        raise NotImplementedError(kind)
    if not isinstance(value, str):
        raise ValueError("expected a string")  # noqa: TRY004  msgspec reports ValueError with its path
    return SecretValue(value.encode())


def decode_withheld(kind: type, value: Any) -> Any:  # noqa: ANN401, ARG001
    """Decode a `SecretValue` from a snapshot, which has none; the ``dec_hook`` of msgspec."""
    if kind is not SecretValue:
        raise NotImplementedError(kind)
    return SecretValue.withheld()


def encode_withheld(value: Any) -> Any:  # noqa: ANN401
    """Encode that there is a `SecretValue`; the ``enc_hook`` of msgspec."""
    if not isinstance(value, SecretValue):
        raise NotImplementedError(type(value))
    return True


def encode_revealed(value: Any) -> Any:  # noqa: ANN401
    """Encode a known `SecretValue` as text, for an object that has it already; an ``enc_hook``."""
    if not isinstance(value, SecretValue) or not value.known:
        raise NotImplementedError(type(value))
    return value.reveal().decode("utf-8", "replace")
