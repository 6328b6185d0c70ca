"""A writer that is killed at random moments of a load, among routes of another program."""

from __future__ import annotations

import random
import time

import pytest

from reconcilers.kernel.writer.protocol import prefixes
from reconcilers.kernel.writer.protocol_messages import (
    Batch,
    Confirmed,
    NextHopSet,
    Routes,
    SetRoutes,
)
from tests.reconcilers.kernel.writer.conftest import Ground
from tests.support.kernel_writer import MAIN, WriterProcess, gateways, routes, wire
from tests.support.netns import DEVICE

pytestmark = [pytest.mark.netns, pytest.mark.program]
ROUTES = 6_000
FOREIGN = 150
OF_A_BATCH = 150


def prefix(number: int) -> str:
    return f"10.{number >> 8}.{number & 255}.0/24"


def load(writer: WriterProcess, wanted: dict[int, NextHopSet], number: int) -> int:
    """Send a table in batches without waiting; returns the number of the last one."""
    order = list(wanted)
    for at in range(0, len(order), OF_A_BATCH):
        by_set: dict[NextHopSet, list[str]] = {}
        for n in order[at : at + OF_A_BATCH]:
            by_set.setdefault(wanted[n], []).append(prefix(n))
        sets = tuple(SetRoutes(s, (Routes(MAIN, wire(*p)),)) for s, p in by_set.items())
        number += 1
        writer.send(Batch(number, routes=sets))
    return number


@pytest.mark.parametrize("seed", [1])
def test_a_writer_killed_ten_times_leaves_what_is_wanted(
    ground: Ground, writer: WriterProcess, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311
    # As FRR has them: our protocol number, our table, our metric; some in the places of ours.
    foreign = {prefix(n) for n in rng.sample(range(ROUTES), FOREIGN)}
    ground.side.batch(
        *(f"route add {p} via 192.0.2.9 dev {DEVICE} proto 186 metric 20" for p in sorted(foreign)),
        f"route add 172.16.0.0/12 via 192.0.2.9 dev {DEVICE} proto 186 metric 20",
    )
    sets = [(ground.a,), (ground.b,), (ground.a, ground.b), (ground.c,)]
    wanted: dict[int, NextHopSet] = {}
    number = 0
    for _ in range(10):
        wanted = {n: rng.choice(sets) for n in range(ROUTES)}
        number = load(writer, wanted, number)
        time.sleep(rng.uniform(0.0, 0.08))
        writer.kill()
        writer.start()
        writer.connect()
    last = load(writer, wanted, number)
    failed: set[bytes] = set()
    confirmed = writer.expect(Confirmed)
    while True:
        for failure in confirmed.failures:
            failed |= {p for r in failure.routes for p in prefixes(r.prefixes)}
        if confirmed.number == last:
            break
        confirmed = writer.expect(Confirmed)
    assert failed == {wire(p) for p in foreign}

    found = routes(ground.side)
    assert len(found) == ROUTES + 1
    theirs = {("192.0.2.9", DEVICE, 1)}
    assert all(gateways(found[p]) == theirs for p in (*foreign, "172.16.0.0/12"))
    for n, next_hops in wanted.items():
        if prefix(n) not in foreign:
            assert len(gateways(found[prefix(n)])) == len(next_hops)

    listed = writer.connect()
    everything = b"".join(r.prefixes for s in listed for r in s.routes)
    writer.batch(removed=(Routes(MAIN, everything),))
    assert set(routes(ground.side)) == foreign | {"172.16.0.0/12"}
    assert ground.side.run("ip", "nexthop") == ""
