"""What tracing costs a change: agents without its calls, with it off, on and sampled, measured in turn.

Agents of the same manifests run side by side, each with its sinks (`bench.bench_propagation`); a round
changes the Service of each of them once, so that a busy machine slows all alike. The collector is a
process of its own, which answers and forgets. In the agent without spans every call of the tracing API
returns one object that does nothing. Printed are medians: the time from the file to all
sessions, and the processor time of the agent for one change, with the time in which it settles.

With ``--p3`` the speaker's P3 as well: routers without and with tracing side by side, with as many
starts of both (`bench.bench_change`).

``python -m bench.bench_tracing [--rounds N] [--peers N] [--services N] [--p3 STARTS]``
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import bench_change, workload
from bench.bench_propagation import SinkProcess, cores, cpu_ms, one_change, start_agent

SETTLE_SECONDS: Final = 0.05
LIMIT: Final = 1.05
"""Of the processor time with one trace of a hundred, against none. The time to the sessions is printed
only: on a busy machine it is that of other programs."""
CHANGES: Final = 200
"""Of each router in P3, for each start."""
COLLECTOR: Final = """
import http.server
import sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


TRACED_ROUTER: Final = """
import sys
from opentelemetry import trace
from cells.observability import span_export
from cells.observability.span_counts import SpanCounts
from cells.options import TelemetryOptions
from speaker.server import Speaker
from waggle.__main__ import main
endpoint = sys.argv.pop(1)
trace.set_tracer_provider(span_export.tracer_provider(
    endpoint + "/v1/traces", timeout=1.0,
    interval=TelemetryOptions().interval_seconds, process={},
    counts=SpanCounts(), sampler=span_export.OfCauses(0.01, record_all=False),
    report=lambda accepted: None,
))
start = Speaker.start
Speaker.start = lambda speaker: start(speaker, trace_received=0.01)
sys.exit(main(sys.argv[1:]))
"""
"""``waggle router`` in a process that samples one trace of a hundred; its first argument is a URL."""


WITHOUT_SPANS: Final = """
import sys
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan
class Nothing(NonRecordingSpan):
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
nothing = Nothing(INVALID_SPAN_CONTEXT)
def span(*_, **__):
    return nothing
nothing.start_as_current_span = nothing.start_span = span
trace.get_tracer = trace.get_current_span = trace.use_span = span
trace.set_span_in_context = lambda span, context=None: context
from waggle_agent.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""An agent in which no call of the tracing API does anything."""


class Variant(NamedTuple):
    """How one agent is started."""

    flags: Sequence[str] = ()
    program: Sequence[str] = ("-m", "waggle_agent")


class Side(NamedTuple):
    """One agent."""

    name: str
    pid: int
    sink: SinkProcess
    manifests: Path
    times: list[float]
    cpu: list[float]
    """For each change, with the time in which it settles."""
    rounds: list[float]
    """Processor time of each round, with what the agent does while the others have their turn."""


def paired(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the median of the ratios of values that were measured side by side."""
    return statistics.median(value / other for value, other in zip(values, others, strict=True))


def variants(endpoint: str) -> dict[str, Variant]:
    """Return the agents."""
    to = ("--otlp-endpoint", endpoint)
    return {
        "off": Variant(),
        "off, once more": Variant(),
        "without spans": Variant(program=("-c", WITHOUT_SPANS)),
        "1 % sampled": Variant((*to, "--otlp-sample-ratio", "0.01")),
        "all sampled": Variant(to),
        "kept for waggle trace": Variant(("--trace-buffer", "2000")),
    }


@contextlib.contextmanager
def collector() -> Iterator[str]:
    """Run a collector; yields its URL."""
    command = [sys.executable, "-c", COLLECTOR]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


@contextlib.contextmanager
def running(name: str, variant: Variant, services: int, peers: int) -> Iterator[Side]:
    """Run one agent until its peers have all prefixes."""
    agent_core, other_cores = cores()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        sink = SinkProcess(other_cores)
        workload.write(directory / "manifests", services=services, peers=peers, port=sink.port)
        agent = start_agent(
            directory,
            directory / "manifests",
            agent_core,
            flags=variant.flags,
            program=variant.program,
        )
        try:
            sink.filled(services + 1, peers)
            yield Side(name, agent.pid, sink, directory / "manifests", [], [], [])
        except BaseException:
            sys.stderr.write((directory / "agent.log").read_text()[-4000:])
            raise
        finally:
            agent.terminate()
            agent.wait(20)
            sink.stop()


def measure(sides: Sequence[Side], rounds: int) -> None:
    """Change each agent's Service once a round; the first round is not measured."""
    for step in range(1, rounds + 2):
        turn = step % len(sides)
        starts = [cpu_ms(side.pid) for side in sides]
        for side in (*sides[turn:], *sides[:turn]):
            before = cpu_ms(side.pid)
            took = one_change(side.sink, side.manifests, step)
            time.sleep(SETTLE_SECONDS)
            if step > 1:
                side.times.append(took)
                side.cpu.append(cpu_ms(side.pid) - before)
        for side, start in zip(sides, starts, strict=True) if step > 1 else ():
            side.rounds.append(cpu_ms(side.pid) - start)


def main() -> int:
    """Measure and print; exit status 1 if sampled tracing is over the limit, in processor time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100, metavar="N")
    parser.add_argument("--peers", type=int, default=50, metavar="N")
    parser.add_argument("--services", type=int, default=1000, metavar="N")
    parser.add_argument("--p3", type=int, default=0, metavar="TIMES", help="measure P3 as well")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        endpoint = stack.enter_context(collector())
        sides = [
            stack.enter_context(running(name, variant, args.services, args.peers))
            for name, variant in variants(endpoint).items()
        ]
        measure(sides, args.rounds)
    print(f"{args.peers} peers, {args.services} Services, medians of {args.rounds} changes, in ms")
    print(f"{'tracing':<24} {'time':>7} {'ratio':>6} {'CPU':>7} {'ratio':>6}")
    ratios = {}
    base = sides[0]
    for side in sides:
        medians = [statistics.median(values) for values in (side.times, side.cpu)]
        off = [statistics.median(values) for values in (base.times, base.cpu)]
        ratios[side.name] = [value / of for value, of in zip(medians, off, strict=True)]
        cells = (f"{v:>7.2f} {r:>6.3f}" for v, r in zip(medians, ratios[side.name], strict=True))
        print(f"{side.name:<24} {' '.join(cells)}")
    worst = ratios["1 % sampled"][1]
    if args.p3:
        worst = max(worst, single(args.p3))
    return 0 if worst <= LIMIT else 1


def single(starts: int) -> float:
    """Measure P3 and print it; returns the ratio of the routers' processor times."""
    off = bench_change.of_checkout(bench_change.ROOT, pure=False)
    with collector() as endpoint:
        traced = off._replace(command=[sys.executable, "-c", TRACED_ROUTER, endpoint])
        programs = {"off": off, "off, once more": off, "1 % sampled": traced}
        measured = bench_change.measure(programs, restarts=starts, changes=CHANGES)
    return bench_change.report(measured)["1 % sampled"].cpu


if __name__ == "__main__":
    sys.exit(main())
