"""A port that is held is there for the program that is to listen, and for no other socket."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from tests.support.held_ports import LOOPBACK, held_port
from tests.support.netns import Link

EVERYTHING_ELSE = """
import socket
from tests.support.held_ports import LOOPBACK, held_port
with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as file:
    file.write("40000 40007")
server = socket.create_server((LOOPBACK, 1000))
taken, sockets = set(), []
with held_port() as port:
    for connects in (True, False):
        try:
            while True:
                sock = socket.socket()
                sockets.append(sock)
                sock.connect((LOOPBACK, 1000)) if connects else sock.bind((LOOPBACK, 0))
                taken.add(sock.getsockname()[1])
        except OSError:
            pass
        for sock in sockets:
            sock.close()
    print(port in taken, len(taken))
"""
"""All ports that the kernel gives to connections and to sockets with any port."""


def test_connections_are_refused_and_a_server_listens_there_again_and_again() -> None:
    with held_port() as port:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((LOOPBACK, port))
            with (
                socket.create_server((LOOPBACK, port)) as server,
                socket.create_connection((LOOPBACK, port)),
            ):
                server.accept()[0].close()


@pytest.mark.netns
def test_no_other_socket_gets_it(link: Link) -> None:
    top = Path(__file__).parents[2]
    script = f"import sys; sys.path.insert(0, {str(top)!r})\n{EVERYTHING_ELSE}"
    held, others = link.left.run(sys.executable, "-c", script).split()
    assert (held, others) == ("False", "7")
