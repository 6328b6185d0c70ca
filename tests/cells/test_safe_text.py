"""H50: text that others chose cannot harm a terminal, a log line or a JSON document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells.safe_text import escape, plain_reason, shorten

HOSTILE = {
    "ansi": ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    "markup": ("[bold red]x[/]", "[bold red]x[/]"),
    "line end": ("a\r\nb", "a\\x0d\\x0ab"),
    "nul": ("a\0b", "a\\x00b"),
    "direction": ("abc\u202egnp.exe", "abc\\u202egnp.exe"),
    "c1": ("\x9b31m", "\\x9b31m"),
    "line separator": ("a\u2028b", "a\\u2028b"),
    "four bytes": ("🐝", "🐝"),
    "tag": ("\U000e0041", "\\U000e0041"),
    "surrogate": ("\ud800", "\\ud800"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_h50_hostile_text_is_escaped(name: str) -> None:
    given_text, expected = HOSTILE[name]
    assert escape(given_text) == expected


@given(st.text(st.characters()))
def test_h50_escaped_text_is_printable_and_valid_utf8(text: str) -> None:
    safe = escape(text)
    assert safe.isprintable()
    safe.encode("utf-8")
    assert escape(safe) == safe


def test_text_is_cut_with_an_ellipsis() -> None:
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("Expected `int`, got `str`", "expected a whole number, not a text"),
        ("Expected `int | null`, got `array`", "expected a whole number or nothing, not a list"),
        ("Expected `bool`, got `object`", "expected true or false, not a mapping"),
        ("Expected `float`, got `bool`", "expected a number, not true or false"),
        ("Expected `int` < 5", "expected a whole number of less than 5"),
        ("Expected `int` > 5", "expected a whole number of more than 5"),
        ("Expected `array` of length == 2", "expected a list of exactly 2 characters"),
        ("Expected `int` <= 65535", "expected a whole number of at most 65535"),
        ("Expected `float` >= 0.0", "expected a number of at least 0"),
        ("Expected `str` of length >= 1", "expected a text of at least 1 characters"),
        ("Invalid enum value 'all'", "'all' is not a known value"),
        ("Object missing `str` key", "object missing a text key"),
    ],
)
def test_a_reason_of_msgspec_has_no_names_of_python(given: str, plain: str) -> None:
    assert plain_reason(given) == plain
