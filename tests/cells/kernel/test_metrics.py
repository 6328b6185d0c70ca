"""The metrics of the routes in the kernel."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from cells.kernel.metrics import KernelMetrics
from reconcilers.kernel.writer.protocol_messages import Cause, Change, Changed, Reason, Routes
from speaker.api import NO_PATHS, BestPathChange
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import MAIN, ONE, PREFIX, Agent, wire


def scraped(agent: Agent) -> dict[str, float]:
    """Return the samples of a scrape."""
    registry = CollectorRegistry()
    registry.register(KernelMetrics(agent.kernel))
    lines = generate_latest(registry).decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name.removeprefix("waggle_kernel_"): float(value) for name, _, value in samples}


def test_wanted_and_installed_routes_of_a_table_and_the_reasons_of_failures() -> None:
    writer = MemoryWriter()
    writer.foreign.add((MAIN, wire("198.51.100.0/24")))
    agent = Agent(writer).start().table(ONE, PREFIX, "203.0.0.0/16", "198.51.100.0/24")
    labels = '{family="ipv4-unicast",table="254"}'
    found = scraped(agent)
    assert found[f"wanted_routes{labels}"] == 3
    assert found[f"installed_routes{labels}"] == 2
    assert found[f'failed_routes{{reason="{Reason.OCCUPIED}"}}'] == 1
    assert found["pending_routes"] == 0
    agent.change(ONE, "21.0.0.0/8")
    assert scraped(agent)[f"wanted_routes{labels}"] == 4


def test_what_the_writer_has_done_is_counted() -> None:
    agent = Agent().start().table(ONE, PREFIX, "203.0.0.0/16")
    counts = agent.kernel.installed.counts
    counts.written, counts.seconds = 7, 0.25
    found = scraped(agent)
    assert found["batches_total"] == counts.batches >= 1
    assert found["batch_routes_total"] == counts.routes == 2
    assert found["messages_total"] == 7
    assert found["writer_seconds_total"] == 0.25
    agent.writer.kernel.clear()
    change = Change(Reason.MISSING, (Routes(MAIN, wire(PREFIX)),))
    agent.writer.report(Changed(Cause.EVENT, (change,)))
    assert scraped(agent)[f'changed_routes_total{{cause="{Cause.EVENT}"}}'] == 1


def test_a_change_is_pending_until_the_writer_confirms_it() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    change = BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire("21.0.0.0/8"),))
    agent.kernel.best_paths("main", [change])
    agent.round()
    assert scraped(agent)["pending_routes"] == 1
    agent.writer.run()
    assert scraped(agent)["pending_routes"] == 0
