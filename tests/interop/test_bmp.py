"""Our BMP messages, decoded by the dissector of Wireshark without an error.

The stream of an engine in virtual time becomes a capture file, and `tshark` reads that; there is no
network.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from speaker.api import GracefulRestart, PeerConfig, PrefixRule, RouteAttributes
from speaker.bmp import Message, MessageKind, PeerDown, PeerUp, RouteMonitoring, encode
from speaker.engine.inputs import ResetPeer, Shutdown
from tests.speaker.engine.monitoring.collector import Collector
from tests.speaker.network import INSTANCE, Network
from tests.support.bmp import Station

pytestmark = pytest.mark.interop

PORT = 11019
_SEGMENT = 1400


def capture(stream: bytes) -> bytes:
    """Return a pcap file with raw IPv4 packets: a TCP stream from 10.0.0.1 to 10.99.0.1."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for at in range(0, len(stream), _SEGMENT):
        data = stream[at : at + _SEGMENT]
        tcp = struct.pack(">HHIIBBHHH", 50000, PORT, 1 + at, 1, 0x50, 0x18, 65535, 0, 0)
        size = 20 + len(tcp) + len(data)
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, size, 0, 0x4000, 64, 6, 0, b"\x0a\0\0\x01", b"\x0a\x63\0\x01"
        )
        parts += (struct.pack("<IIII", 0, at, size, size), ip, tcp, data)
    return b"".join(parts)


def everything() -> Station:
    """Return the messages for a station in the life of a speaker with three different neighbours."""
    network = Network()
    hub = network.host("hub", "10.0.0.1", 65000)
    watch = Collector(hub.engine, hub.give)
    watch.configure()
    watch.accept()
    settings: tuple[dict[str, Any], ...] = (
        {"add_path": "both", "import_": "all"},
        {"graceful_restart": GracefulRestart(), "import_": (PrefixRule("10.2.0.0/16", le=32),)},
        {"import_": "none"},
    )
    leaves = []
    for n, shared in enumerate(settings):
        asn = (4_200_000_000, 65002, 65000)[n]
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", asn)
        hub.peer(
            PeerConfig(
                name=leaf.name, address=leaf.address, peer_asn=asn, passive=True, export="all",
                **shared,
            )
        )  # fmt: skip
        shared = {**shared, "import_": "all"}
        leaf.peer(
            PeerConfig(name="hub", address="10.0.0.1", peer_asn=65000, export="all", **shared)
        )
        leaves.append(leaf)
    network.run(5.0)
    rich = RouteAttributes(
        med=7, communities=(0xFFFFFF01, 0xFDE90007), large_communities=((65001, 1, 2),),
        extended_communities=(bytes.fromhex("0002fde900000001"),),
    )  # fmt: skip
    for n, leaf in enumerate(leaves):
        leaf.routes({f"10.{n + 1}.{i}.0/24": rich for i in range(60)})
        leaf.routes({f"fd00:{n + 1}:{i}::/48": RouteAttributes() for i in range(40)})
    hub.routes({"192.0.2.0/24": RouteAttributes(), "2001:db8::/32": RouteAttributes()})
    network.run(5.0)
    leaves[0].routes({f"10.1.{i}.0/24": None for i in range(30)})
    network.run(70.0)
    hub.give(ResetPeer(INSTANCE, "leaf1", "new cable"))
    for number in list(leaves[2].ends):
        network.cut(leaves[2], number)
        leaves[2].give_closed(number)
    network.run(10.0)
    hub.give(Shutdown())
    return watch.station


@pytest.fixture(scope="module")
def tshark() -> str:
    """Return the program, or skip with the reason."""
    found = shutil.which("tshark")
    if found is None:
        pytest.skip("tshark is not installed")
    return found


def layers(packet: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Iterate over the BMP messages that end in a packet."""
    found = packet["_source"]["layers"].get("bmp", [])
    yield from found if isinstance(found, list) else [found]


def walk(value: object) -> Iterator[tuple[str, object]]:
    """Iterate over all fields, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def test_wireshark_decodes_our_bmp_messages(tshark: str, tmp_path: Path) -> None:
    station = everything()
    # Wireshark 4.0 takes the TLVs of a Peer Up for the beginning of another BGP message.
    octets = b"".join(
        encode(replace(message, information=()) if isinstance(message, PeerUp) else message)
        for message in station.messages
    )
    file = tmp_path / "bmp.pcap"
    file.write_bytes(capture(octets))
    done = subprocess.run(
        [tshark, "-n", "-r", str(file), "-d", f"tcp.port=={PORT},bmp", "-T", "json",
         "--no-duplicate-keys"],
        capture_output=True, check=True, timeout=100,
    )  # fmt: skip
    packets = json.loads(done.stdout)
    fields: dict[str, list[str]] = {}
    for packet in packets:
        for message in layers(packet):
            for key, value in walk(message):
                if isinstance(value, str):
                    fields.setdefault(key, []).append(value)
    every = {key for packet in packets for key, _ in walk(packet)}

    assert not {key for key in every if "malformed" in key or "expert" in key}
    assert Counter(map(int, fields["bmp.type"])) == Counter(map(_kind, station.messages))
    assert set(map(_kind, station.messages)) == set(MessageKind) - {MessageKind.ROUTE_MIRRORING}
    announced = fields["bgp.nlri_prefix"] + fields["bgp.mp_reach_nlri_ipv6_prefix"]
    gone = fields["bgp.withdrawn_prefix"] + fields["bgp.mp_unreach_nlri_ipv6_prefix"]
    assert (len(announced), len(gone)) == (station.announced, station.withdrawn)
    assert fields["bgp.nlri_path_id"]
    monitoring = [message for message in station.messages if isinstance(message, RouteMonitoring)]
    assert Counter(fields["bmp.peer.flags.post_policy"])["1"] == sum(
        message.peer.post_policy for message in monitoring
    )
    assert Counter(fields["bmp.peer.flags.adj_rib_out"])["1"] == sum(
        message.peer.adj_rib_out for message in monitoring
    )
    downs = [message.reason for message in station.messages if isinstance(message, PeerDown)]
    assert list(map(int, fields["bmp.peer.down.reason"])) == downs
    assert fields["bmp.stats.data.routes_loc_rib"] == ["132"]
    assert sorted(map(int, fields["bmp.stats.data.routes_adj_rib_in"])) == [70, 100, 100]
    assert "4200000000" in fields["bgp.update.path_attribute.as_path_segment.as4"]


def _kind(message: Message) -> int:
    return encode(message)[5]
