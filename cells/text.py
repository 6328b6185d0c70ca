"""Make text of unknown origin safe to show: in a terminal, in a log line, in JSON.

Peers, files and API objects choose this text. Nothing of it may move the cursor, start a new
line, turn the writing direction or be invalid UTF-8; it stays readable otherwise. This module
imports nothing of the project, so that the command line starts fast.
"""

from __future__ import annotations


def escape(text: str, keep: str = "") -> str:
    r"""Replace what is not printable by an escape such as ``\x1b`` or ``\u202e``.

    Control characters, line separators, direction overrides, private and unassigned characters
    and lone surrogates are replaced; characters in ``keep`` are not.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else _escaped(ord(char)) for char in text
    )


def decode(data: bytes) -> str:
    r"""Read UTF-8 as far as it is, invalid bytes as ``\xNN``, and `escape` the result."""
    return escape(data.decode("utf-8", "backslashreplace"))


def shorten(text: str, limit: int) -> str:
    """Cut to ``limit`` characters, the last of them an ellipsis if something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _escaped(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
