"""Memory of an agent whose FRRConfigurations change again and again.

Two agents read manifests, one after the other: one object with 100,000 prefixes that ten neighbours
are sent, and 200 objects with 50 prefixes for two neighbours. Each change replaces the community of all
routes. Printed are resident megabytes at first and after each change, once the agent is idle; the
exit status is 1 if they exceed a goal after the last change.

``python -m bench.bench_object_memory [--only CASE] [--changes N] [--checkout DIRECTORY]``; another
checkout runs its agent with its own ``.venv``
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import frrk8s_workload as workload
from bench.bench_received import cpu_seconds
from bench.workload import put

ROOT: Final = Path(__file__).resolve().parent.parent
PORT: Final = 10_180
"""No one listens there: what is measured are objects, and not sessions."""
FIRST_COMMUNITY: Final = 100
IDLE_SECONDS: Final = 3.0
"""For how long an agent uses nearly no CPU before its memory is read."""
IDLE_CPU: Final = 0.06
"""CPU seconds that it uses at most in half a second of these."""
WORK_CPU: Final = 0.1
"""CPU seconds that each change takes at least: before, the agent has not read it."""
LIMIT_SECONDS: Final = 120.0
Object = dict[str, Any]


class Case(NamedTuple):
    """Objects that change, and the resident megabytes that an agent has at most after all changes."""

    what: str
    objects: Callable[[], list[Object]]
    most: float


CASES: Final = {
    "one": Case(
        "one object of 100,000 prefixes, 10 neighbours",
        lambda: [
            workload.advertising(0, [workload.prefix(n) for n in range(100_000)], 10, port=PORT)
        ],
        650.0,
    ),
    "many": Case(
        "200 objects of 50 prefixes, 2 neighbours",
        lambda: workload.parts(200, 50, 2, port=PORT),
        125.0,
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=sorted(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--changes", type=int, default=8, metavar="N")
    parser.add_argument("--checkout", type=Path, default=ROOT, metavar="DIRECTORY")
    args = parser.parse_args(arguments)
    missed = False
    for name, case in CASES.items():
        if args.only in (None, name):
            print(f"{case.what}:", end="", flush=True)
            last = 0.0
            for last in measure(args.checkout.resolve(), case.objects(), args.changes):
                print(f" {last:.0f}", end="", flush=True)
            verdict = "met" if last <= case.most else "MISSED"
            print(f" MB (goal {case.most:g}, {verdict})", flush=True)
            missed = missed or last > case.most
    return 1 if missed else 0


def measure(checkout: Path, objects: list[Object], changes: int) -> Iterator[float]:
    """Yield the resident megabytes of an agent at first and after each change."""
    own = checkout / ".venv" / "bin" / "python"
    program = own if checkout != ROOT else Path(sys.executable)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        manifests = directory / "manifests"
        manifests.mkdir()
        _write(manifests / "all.json", objects, FIRST_COMMUNITY)
        command: list[str | Path] = [program, "-m", "waggle_agent", "--manifests", manifests]
        command += ["--node-name", workload.NODE, "--api-socket", directory / "api"]
        command += ["--enable-cell", "frrk8s", "--disable-cell", "cilium", "--log-level", "error"]
        env = os.environ | {"PYTHONPATH": f"{checkout}:{checkout / 'cmd'}"}
        with subprocess.Popen(command, cwd=directory, env=env, stdin=subprocess.DEVNULL) as process:
            try:
                _until_idle(process, 0.0)
                yield resident_megabytes(process.pid)
                for number in range(1, changes + 1):
                    before = cpu_seconds(process.pid)
                    _write(manifests / "all.json", objects, FIRST_COMMUNITY + number)
                    _until_idle(process, before)
                    yield resident_megabytes(process.pid)
            finally:
                process.terminate()


def _write(path: Path, objects: list[Object], community: int) -> None:
    """Replace a file: its objects have another community then."""
    for item in objects:
        for neighbor in item["spec"]["bgp"]["routers"][0]["neighbors"]:
            [advertised] = neighbor["toAdvertise"]["withCommunity"]
            advertised["community"] = f"{workload.LOCAL_ASN}:{community}"
    written = path.parent.parent / path.name
    put(written, [workload.node(), *objects])
    written.replace(path)


def _until_idle(process: subprocess.Popen[bytes], used: float) -> None:
    """Wait until an agent has used CPU beyond what it had used, and then nearly none for a while."""
    limit = time.monotonic() + LIMIT_SECONDS
    idle_since, before = time.monotonic(), cpu_seconds(process.pid)
    while time.monotonic() - idle_since < IDLE_SECONDS:
        if process.poll() is not None:
            raise RuntimeError(f"the agent ended with status {process.returncode}")
        if time.monotonic() > limit:
            raise TimeoutError(f"the agent is not idle after {LIMIT_SECONDS:.0f} s")
        time.sleep(0.5)
        now = cpu_seconds(process.pid)
        if now - before > IDLE_CPU or now - used < WORK_CPU:
            idle_since = time.monotonic()
        before = now


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
