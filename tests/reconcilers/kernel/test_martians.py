"""Prefixes that are never installed."""

from __future__ import annotations

import pytest

from reconcilers.kernel.martians import martian, suspects
from speaker.nlri import prefix_to_wire


@pytest.mark.parametrize(
    ("prefix", "block"),
    [
        ("0.0.0.0/8", "0.0.0.0/8 is this network"),
        ("127.0.0.0/8", "127.0.0.0/8 is loopback"),
        ("127.1.2.0/24", "127.0.0.0/8 is loopback"),
        ("169.254.0.0/16", "169.254.0.0/16 is link-local"),
        ("224.0.0.0/3", "224.0.0.0/3 is multicast and reserved"),
        ("239.1.2.3/32", "224.0.0.0/4 is multicast"),
        ("255.255.255.255/32", "240.0.0.0/4 is reserved"),
        ("::1/128", "::1/128 is loopback"),
        ("::/128", "::/128 is unspecified"),
        ("::ffff:10.0.0.0/120", "::ffff:0:0/96 is IPv4-mapped"),
        ("fe80::/64", "fe80::/10 is link-local"),
        ("ff00::/8", "ff00::/8 is multicast"),
    ],
)
def test_addresses_that_no_router_forwards_to(prefix: str, block: str) -> None:
    family, nlri = prefix_to_wire(prefix)
    assert martian(family, nlri) == block
    assert list(suspects(family, [nlri])) == [nlri]


@pytest.mark.parametrize(
    "prefix",
    ["0.0.0.0/0", "0.0.0.0/1", "126.0.0.0/7", "10.0.0.0/8", "169.253.0.0/16", "::/0", "fec0::/10"],
)
def test_prefixes_with_other_addresses_are_no_martians(prefix: str) -> None:
    assert martian(*prefix_to_wire(prefix)) is None


def test_of_a_table_few_prefixes_are_looked_at() -> None:
    wires = [prefix_to_wire(f"{n}.1.0.0/16") for n in range(1, 127)]
    family = wires[0][0]
    assert not list(suspects(family, [nlri for _, nlri in wires]))
