"""The nearest prefixes share the most leading bits with an unknown one."""

from __future__ import annotations

import pytest

from cells.nearest_prefixes import nearest_prefixes

KNOWN = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.0/24",
    "10.1.3.0/24",
    "11.0.0.0/8",
    "2001:db8::/32",
    "x",
]


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [
        ("10.1.2.9", ["10.1.2.0/24", "10.1.3.0/24", "10.1.0.0/16"]),
        ("10.1.0.0/16", ["10.1.0.0/16", "10.1.2.0/24", "10.1.3.0/24"]),
        ("2001:db8::1", ["2001:db8::/32"]),
        ("192.0.2.1", []),
        ("not-a-prefix", []),
    ],
)
def test_the_prefixes_with_most_leading_bits_are_nearest(wanted: str, nearest: list[str]) -> None:
    assert nearest_prefixes(wanted, KNOWN) == nearest
