"""Make text of unknown origin safe to show: in a terminal, in a log line, in JSON.

Peers, files and API objects choose this text. Nothing of it may move the cursor, start a new
line, turn the writing direction or be invalid UTF-8; it stays readable otherwise. This module
imports nothing of the project, so that the command line starts fast.
"""

from __future__ import annotations

import re

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
"""msgspec's names of types -> ours."""


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


def shorten(text: str, limit: int) -> str:
    """Cut to ``limit`` characters, the last of them an ellipsis if something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _escaped(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain_reason(text: str) -> str:
    """Return a message of msgspec in the words of a configuration, without names of Python.

    ``Expected `int` <= 65535`` becomes ``expected a whole number of at most 65535``.
    """
    got = re.fullmatch(r"Expected `(.+)`, got `(.+)`", text)
    if got:
        return f"expected {_types(got[1])}, not {_types(got[2])}"
    bound = re.fullmatch(r"Expected `(\w+)`( of length)? ([<>]=?|==) (\S+)", text)
    if bound:
        relation = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
        number = bound[4].removesuffix(".0")
        limit = f"{relation.get(bound[3], 'exactly')} {number}"
        return f"expected {_types(bound[1])} of {limit}{' characters' if bound[2] else ''}"
    unknown = re.fullmatch(r"Invalid enum value (.+)", text)
    if unknown:
        return f"{unknown[1]} is not a known value"
    plain = re.sub(r"`(\w+)`", lambda name: _TYPES.get(name[1], name[1]), text)
    return plain[:1].lower() + plain[1:]


def _types(names: str) -> str:
    return " or ".join(_TYPES.get(name, name) for name in names.split(" | "))
