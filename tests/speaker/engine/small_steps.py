"""Steps so small that a table of a hundred prefixes has many, and what tests of them share."""

from __future__ import annotations

from typing import Any

import pytest

from speaker.api import PeerConfig
from speaker.engine import sliced_work
from speaker.rib import initial_table, prefix_groups, update_group

BEGIN, END = (b"\xff" * 16 + bytes.fromhex(f"0017 05 0001 {kind} 01") for kind in ("01", "02"))
"""ROUTE-REFRESHes of IPv4 unicast that delimit an answer (RFC 7313)."""


def config(name: str, address: str, asn: int, **options: Any) -> PeerConfig:  # noqa: ANN401
    """Return a peer from which all is imported, and to which all is exported."""
    values: dict[str, Any] = {"import_": "all", "export": "all", **options}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)


def set_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the limits of what is sent in steps."""
    monkeypatch.setattr(sliced_work, "SLICE_UNITS", 10)
    monkeypatch.setattr(update_group, "LARGE_TABLE", 20)
    monkeypatch.setattr(update_group, "LARGE_DIFFERENCE", 20)
    monkeypatch.setattr(prefix_groups, "STEP_PREFIXES", 7)
    monkeypatch.setattr(prefix_groups, "PIECE_UNITS", 20)
    for module in (prefix_groups, initial_table):
        monkeypatch.setattr(module, "STEP_UNITS", 10)
    monkeypatch.setattr(initial_table, "LAST_PREFIXES", 3)
