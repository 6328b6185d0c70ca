"""A password that is not printed by accident: not by ``repr``, a log, JSON or a traceback.

It must never get a ``__str__`` with its value; `Secret.reveal` is the only way to it, so that a search
for that word finds every place where a password leaves its wrapper.
"""

from __future__ import annotations

import hmac
from typing import Final, final

MAX_KEY_LENGTH: Final = 80
"""TCP_MD5SIG_MAXKEYLEN of Linux; RFC 2385 section 4.5 requires keys of up to 80 octets."""


class InvalidSecret(ValueError):  # noqa: N818  named after the fault
    """A password that TCP MD5 cannot use; the message never holds the password."""


@final
class Secret:
    """A TCP MD5 password (RFC 2385). Raises `InvalidSecret` for what the kernel would not take."""

    __slots__ = ("_value",)

    def __init__(self, value: str | bytes) -> None:
        octets = value.encode() if isinstance(value, str) else bytes(value)
        if not octets:
            raise InvalidSecret("the password is empty")
        if len(octets) > MAX_KEY_LENGTH:
            raise InvalidSecret(f"the password is longer than {MAX_KEY_LENGTH} octets")
        if b"\x00" in octets:
            # Daemons written in C would use the part before it: two different keys.
            raise InvalidSecret("the password holds a NUL octet")
        self._value = octets

    def reveal(self) -> bytes:
        """Return the password itself, for the socket option and nothing else."""
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be pickled: a pickle would hold the password."""
        raise TypeError("a Secret is not written anywhere")
