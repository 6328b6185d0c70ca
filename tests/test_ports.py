"""Ports for servers that listen later: each is one test's, whatever other workers do."""

from __future__ import annotations

import multiprocessing
import socket
from multiprocessing.connection import Connection

import pytest

from tests.support.ports import PORTS_OF_BLOCK, Ports, chosen_by_kernel, free_port

ADDRESS = "127.0.0.1"


def within_a_block() -> int:
    """Return a port with which no block begins, and whose next one is in the same block."""
    while not 0 < free_port(ADDRESS) % PORTS_OF_BLOCK < PORTS_OF_BLOCK // 2:
        pass
    return free_port(ADDRESS)


def claim(first: int, answer: Connection) -> None:
    """Claim a block in another process, and keep it until the process is ended."""
    answer.send(Ports([range(first, first + 2)]).free(ADDRESS))
    answer.recv()


def test_a_port_is_given_once() -> None:
    found = [free_port(ADDRESS) for _ in range(250)]
    assert len(set(found)) == 250


def test_no_outgoing_connection_and_no_server_on_port_0_has_such_a_port() -> None:
    assert free_port(ADDRESS) not in chosen_by_kernel()


def test_a_port_of_another_server_is_passed_over() -> None:
    first = within_a_block()
    with socket.create_server((ADDRESS, first)):
        assert Ports([range(first, first + 2)]).free(ADDRESS) == first + 1


def test_a_block_is_one_process_s_until_it_ends() -> None:
    ours, theirs = multiprocessing.Pipe()
    first = within_a_block()
    other = multiprocessing.get_context("spawn").Process(target=claim, args=(first, theirs))
    other.start()
    try:
        assert ours.poll(60)
        assert ours.recv() == first
        with pytest.raises(RuntimeError, match="claimed"):
            Ports([range(first, first + 2)]).free(ADDRESS)
        ours.send("end")
        other.join(60)
    finally:
        other.kill()
        other.join()
        ours.close()
        theirs.close()
    assert Ports([range(first, first + 2)]).free(ADDRESS) == first
