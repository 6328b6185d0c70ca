"""The bench of turns with routes in the kernel: what it measures has happened."""

from __future__ import annotations

import pytest

from bench.bench_kernel_turns import main


def test_both_tables_are_in_the_kernel_and_one_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--prefixes", "500", "--sets", "100", "--different", "200"])
    lines = capsys.readouterr().out.splitlines()
    both = [line.split() for line in lines if " have both next hops" in line]
    left = [line.split() for line in lines if line.endswith("routes are left")]
    # Prefixes of the first table are drawn by chance, some of them twice.
    assert 490 <= int(both[0][0]) == int(left[0][0]) <= 500
    assert (both[1][0], both[1][-3], left[1][0]) == ("200", "200", "200")
    steps = [line.partition("  ")[0] for line in lines if "longest turn" in line]
    events = ["session lost", "session restored", "host changed", "lost with its routes"]
    assert steps[:-1] == [
        *("table 1", "table 2", *events),
        *("route server 1", "route server 2", *events),
    ]
