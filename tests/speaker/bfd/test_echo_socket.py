"""Echo packets on a link, and the link-layer addresses of neighbors."""

from __future__ import annotations

import socket
import sys

import pytest

from speaker.bfd.echo_socket import _checksum, _packet
from tests.support.netns import linked_namespaces

pytestmark = pytest.mark.netns

PAYLOAD = bytes(range(16))


@pytest.mark.parametrize(("address", "header"), [("192.0.2.1", 20), ("2001:db8::1", 40)])
def test_a_packet_is_from_this_node_for_this_node(address: str, header: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    packet = _packet(packed, PAYLOAD)
    assert packet.count(packed) == 2
    assert packet.endswith(PAYLOAD)
    ports = packet[header : header + 4]
    assert ports == 2 * (3785).to_bytes(2)
    pseudo = 2 * packed + (len(packet) - header).to_bytes(4) + (17).to_bytes(4)
    assert _checksum(pseudo + packet[header:]) == 0
    if family == socket.AF_INET:
        assert _checksum(packet[:header]) == 0
        assert packet[8] == 255
    else:
        assert packet[7] == 255


def test_what_a_neighbor_returns_is_received(no_namespaces: str | None) -> None:
    """By the forwarding of its kernel, of both families; nothing else reaches the sockets."""
    if no_namespaces:
        pytest.skip(no_namespaces)
    with linked_namespaces() as link:
        for number, side in enumerate((link.left, link.right), 1):
            side.add_address(f"192.0.2.{number}/24")
            side.add_address(f"2001:db8::{number}/64")
        forwards = "echo 1 >/proc/sys/net/ipv4/ip_forward; "
        forwards += "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
        link.right.run("sh", "-c", forwards)
        printed = link.left.run(sys.executable, "-c", PROGRAM, PAYLOAD.hex())
    assert printed.split() == [PAYLOAD.hex()] * 2


PROGRAM = """
import select, socket, sys, time
from speaker.bfd.echo_socket import Neighbor, neighbors, open_echo_sockets
payload = bytes.fromhex(sys.argv[1])
ends = {socket.AF_INET: ("192.0.2.1", "192.0.2.2"), socket.AF_INET6: ("2001:db8::1", "2001:db8::2")}
for sock in open_echo_sockets():
    own, far = ends[sock.family]
    sock.listen()
    with socket.socket(sock.family, socket.SOCK_DGRAM) as any_packet:
        any_packet.sendto(b"", (far, 9))
    while not (found := neighbors(sock.family, {far, own})):
        time.sleep(0.01)
    (neighbor,) = found.pop(far)
    assert not found
    # A frame for another node, as an interface in promiscuous mode takes it.
    elsewhere = Neighbor(socket.if_nametoindex("lo"), bytes.fromhex("020000000099"))
    sock.send(elsewhere, own, payload[::-1])
    sock.send(neighbor, own, payload)
    select.select([sock.sock], [], [], 30)
    print(*(each.hex() for each in sock.read(10)))
    sock.close()
"""
