"""Addresses of sockets."""

from __future__ import annotations

import pytest

from speaker.bfd.transport import is_link_local


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("fe80::1", True),
        ("febf::1", True),
        ("fe8::1", False),
        ("fe9::", False),
        ("fec0::1", False),
        ("2001:db8::fe80", False),
        ("169.254.1.1", False),
    ],
)
def test_an_ipv6_address_of_fe80_10_needs_its_interface(address: str, *, expected: bool) -> None:
    assert is_link_local(address) is expected
