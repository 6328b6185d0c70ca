"""The tables of ``waggle render``."""

from __future__ import annotations

from typing import Any

import pytest

from waggle.render import peer_row


def peer(**fields: object) -> dict[str, Any]:
    return {
        "name": "p",
        "address": None,
        "interface": None,
        "peerASN": 65010,
        "peerType": None,
        "peerPort": 179,
        "families": ["ipv4-unicast"],
        "localAddress": None,
        "holdTime": 90,
        "keepaliveTime": 30,
        "connectRetryTime": 120,
        "password": False,
        "gracefulRestart": None,
        "advertise": [],
        "accept": [],
        **fields,
    }


@pytest.mark.parametrize(
    ("fields", "address", "asn"),
    [
        ({"address": "192.0.2.1"}, "192.0.2.1:179", "65010"),
        ({"address": "2001:db8::1"}, "[2001:db8::1]:179", "65010"),
        ({"interface": "eth1"}, "eth1:179", "65010"),
        ({"interface": "eth1", "peerASN": 0}, "eth1:179", "any"),
        ({"interface": "eth1", "peerASN": 0, "peerType": "external"}, "eth1:179", "external"),
    ],
)
def test_the_table_has_every_peer_also_one_without_an_address(
    fields: dict[str, object], address: str, asn: str
) -> None:
    instance = {"name": "i", "localASN": 65001, "routerID": "192.0.2.9"}
    assert peer_row(instance, peer(**fields))[:4] == ["i/p", address, "65001", asn]
