"""The rules of TCP MD5 passwords in objects (RFC 2385); no message has anything of a password."""

from __future__ import annotations

from typing import Final

MAX_OCTETS: Final = 80
"""TCP_MD5SIG_MAXKEYLEN of Linux."""


def password_octets(octets: bytes) -> bytes:
    """Return a password's octets for a session: without the newline of editors and `echo`."""
    return octets.rstrip(b"\r\n")


def password_error(octets: bytes) -> str | None:
    """Return why TCP MD5 cannot use a password, or None."""
    used = password_octets(octets)
    if not used:
        return "the password is empty"
    if len(used) > MAX_OCTETS:
        return f"the password is longer than {MAX_OCTETS} octets"
    if b"\0" in used:
        return "the password has a NUL octet"
    return None
