"""Peers of the local API by the names of the objects that configure them."""

from __future__ import annotations

from msgspec.structs import replace

from reconcilers.model import ObjectRef
from tests.cells.serve.test_left_out import routing
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows

BGP_PEER = ObjectRef("BGPPeer", "metallb-system", "tor")
SHARED = ObjectRef("FRRConfiguration", "frr-k8s-system", "rack")


def test_an_object_that_configures_one_peer_names_it() -> None:
    rows = Rows()
    other = replace(PEER, name="other", address="192.0.2.77", origins=(SHARED,))
    rows.apply([INSTANCE], [replace(PEER, origins=(BGP_PEER, SHARED)), other])
    sessions = routing(rows)

    def names(peer: str) -> list[str]:
        return [item["name"] for item in sessions.peers(peer=peer, instance=None)]

    assert names("tor") == [PEER.name]
    assert names(PEER.name) == [PEER.name]
    # Not an object that configures several.
    assert names("rack") == []
