"""Time of ``waggle render`` for 10,000 Services in one JSON file, start included.

``python -m bench.bench_render [--services N] [--runs N]``
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import workload

GOAL_SECONDS = 2.0


def main() -> int:
    """Measure and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--services", type=int, default=10_000, metavar="N")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    args = parser.parse_args()
    times = []
    with tempfile.TemporaryDirectory() as name:
        manifests = Path(name) / "manifests"
        workload.write(manifests, services=args.services, peers=1, port=179)
        command = [
            sys.executable, "-m", "waggle", "render",
            "-f", str(manifests), "--node", workload.NODE, "-o", "json",
        ]  # fmt: skip
        for _ in range(args.runs):
            began = time.monotonic()
            done = subprocess.run(command, capture_output=True, check=True, cwd=name)
            times.append(time.monotonic() - began)
        (instance,) = json.loads(done.stdout)["instances"]
        prefixes = len(instance["peers"][0]["advertise"])
    if prefixes != args.services + 1:
        print(f"{prefixes} prefixes instead of {args.services + 1}")
        return 1
    median = statistics.median(times)
    print(
        f"{args.services} services: median {median:.2f} s of {args.runs} runs "
        f"(min {min(times):.2f}, max {max(times):.2f}); goal {GOAL_SECONDS:g} s: "
        f"{'met' if median < GOAL_SECONDS else 'MISSED'}"
    )
    return 0 if median < GOAL_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
