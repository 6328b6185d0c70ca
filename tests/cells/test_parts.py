"""The parts of the programs by their names in health, log and metrics, in the order of their start.

Users see the names (``waggle_task_restarts_total{task="intent.rounds"}``, ``job failed``), and
the order decides what still works while the program ends: what is logged, sent and withdrawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from cells.dialects.cell import DialectCell
from cells.hive import Cell, load
from cells.hive.hive import Hive
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

TELEMETRY = {"--otlp-endpoint": "http://127.0.0.1:1", "--http-address": "127.0.0.1:0"}
KUBERNETES = {"--kubeconfig": "/kubeconfig", **TELEMETRY}
AGENT: dict[str, object] = {
    "--manifests": ["/manifests"],
    "--snapshot-file": "/snapshot",
    "--state-directory": "/state",
    "--page-address": "127.0.0.1:0",
    **KUBERNETES,
}
OPERATOR: dict[str, object] = {"--webhook": "127.0.0.1:0", **KUBERNETES}
JOBS_OF_AGENT = """
    metrics.loop-lag speaker.sessions frrk8s.log-level bfd.rows bfd.process
    claims.write-claims claims.write-frrk8s-state claims.write-metallb-state intent.rounds
    manifests.write-last-valid manifests.watch
    kubernetes.watch kubernetes.log kubernetes.secrets snapshot.resume snapshot.write
    kernel.best-paths kernel.host kernel.next-hops kernel.sessions kernel.deferral kernel.state
    kernel.reachability kernel.writer kernel.answers host.netlink host.gateways host.redistributed
    apply.write-session-addresses apply.session-addresses apply.write-learned-limits
    apply.learned-limits apply.rounds apply.verification apply.session-readings apply.peer-limits
    history.follow readiness.configuration readiness.gate status.rounds
    report.cluster-size report.status report.occurrences report.events report.objects
    report.object-writes-frrk8s report.object-writes-metallb
"""
OTHERS_OF_AGENT = """
    logging telemetry http speaker state-directory claims frrk8s-state metallb-state
    manifests-last-valid manifests kubernetes snapshot writer goodbye choice
    session-addresses learned-limits page api
"""
JOBS_OF_OPERATOR = """
    frrk8s.log-level kubernetes.watch kubernetes.log kubernetes.secrets metrics.loop-lag
    operator.election operator.writes operator.cluster-addresses operator.storage-versions
    operator.rivals operator.companions operator.abandoned-objects operator.service-events
    operator.service-event-writes webhook.webhook
"""
OTHERS_OF_OPERATOR = "logging kubernetes telemetry http webhook"


@cache
def parts(*, of_operator: bool = False) -> tuple[str, ...]:
    """Return the hooks of a program with all dialects and sources on, in their order."""
    cells: Sequence[Cell] = OPERATOR_CELLS if of_operator else AGENT_CELLS
    flags: dict[str, object] = OPERATOR if of_operator else AGENT
    dialects = [cell.name for cell in cells if isinstance(cell, DialectCell)]
    others = [] if of_operator else ["kernel", "bfd"]
    switches = {"enable_cell": [*dialects, *others]}
    return Hive(cells, load(cells, flags={**switches, **flags})).lifecycle.names


@pytest.mark.parametrize(
    ("of_operator", "jobs", "others"),
    [
        pytest.param(False, JOBS_OF_AGENT, OTHERS_OF_AGENT, id="agent"),
        pytest.param(True, JOBS_OF_OPERATOR, OTHERS_OF_OPERATOR, id="operator"),
    ],
)
def test_the_jobs_and_the_other_parts(jobs: str, others: str, *, of_operator: bool) -> None:
    names = parts(of_operator=of_operator)
    of_jobs = {name.removeprefix("job ") for name in names if name.startswith("job ")}
    assert of_jobs == set(jobs.split())
    assert {name for name in names if not name.startswith("job ")} == set(others.split())
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("logging", "telemetry", "lines of all other parts are in the format"),
        ("telemetry", "speaker", "spans of the stop of the others are sent"),
        ("speaker", "job intent.rounds", "sessions are closed after what writes routes has ended"),
        ("state-directory", "claims", "another agent is refused before a file is read"),
        ("claims", "job intent.rounds", "the first intent has the claims of the last process"),
        ("manifests-last-valid", "manifests", "a broken file has its last valid objects"),
        ("writer", "job kernel.writer", "the process is started before it is run"),
        ("job kernel.writer", "goodbye", "routes are removed while the writer is connected"),
        ("job apply.rounds", "job readiness.gate", "readiness follows from applied objects"),
        ("job apply.rounds", "api", "requests are answered by parts that have started"),
    ],
)
def test_what_starts_first_stops_last(first: str, second: str, why: str) -> None:
    names = parts()
    assert names.index(first) < names.index(second), why
