"""The rows of the kernel's tables and next hops, and what an FRRNodeState has of them."""

from __future__ import annotations

from reconcilers.frrk8s.configuration_text import kernel_lines
from reconcilers.kernel.state_rows import next_hop_rows, table_rows
from reconcilers.kernel_state import KernelNextHops, KernelSettings, KernelTable
from tests.reconcilers.kernel.build import path, paths
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    MAIN,
    ONE,
    PREFIX,
    Agent,
    wire,
)


def test_a_table_has_counts_and_problems_and_next_hops_in_use() -> None:
    writer = MemoryWriter()
    writer.foreign.add((MAIN, wire("198.51.100.0/24")))
    agent = Agent(writer).start().table(BOTH, PREFIX, "198.51.100.0/24")
    agent.change(paths(path("192.0.2.9", address="10.88.0.1")), "20.0.0.0/8")
    kernel = agent.kernel
    tables = list(table_rows(kernel.wanted_tables, kernel.installed, kernel.withheld))
    assert tables[0] == KernelTable(
        table=254,
        family="ipv4-unicast",
        metric=20,
        instances=("main",),
        installed=1,
        failed=(("Occupied", 1),),
    )
    next_hops = sorted(next_hop_rows(kernel.wanted_tables))
    reason = "no route leads to 192.0.2.9"
    assert next_hops == [
        KernelNextHops(instance="main", problem=reason),
        KernelNextHops(instance="main", next_hops=("10.88.0.1%eth0", "10.88.0.2%eth0")),
    ]
    assert list(kernel_lines("main", tables[:1], next_hops)) == [
        "kernel table 254 ipv4-unicast metric 20: 1 route installed, 1 Occupied",
        f"kernel next hops: {reason}",
        "kernel next hops: 10.88.0.1%eth0 10.88.0.2%eth0",
    ]
    assert list(kernel_lines("other", tables[:1], next_hops)) == []
    settings = KernelSettings(
        protocol=186, multipath=8, multipath_relax=True, problems=("no writer",)
    )
    assert list(kernel_lines("main", tables[:1], [], settings)) == [
        "kernel: no writer",
        "kernel protocol 186, at most 8 next hops, AS paths of equal length",
        "kernel table 254 ipv4-unicast metric 20: 1 route installed, 1 Occupied",
    ]


def test_next_hops_that_no_route_uses_any_more_are_no_row() -> None:
    agent = Agent().start().table(BOTH, PREFIX)
    agent.change(ONE, PREFIX, before=BOTH)
    (row,) = next_hop_rows(agent.kernel.wanted_tables)
    assert row.next_hops == ("10.88.0.1%eth0",)
