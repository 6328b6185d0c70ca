"""The bench of turns with routes in the kernel: what it measures has happened."""

from __future__ import annotations

import pytest

from bench.bench_kernel_turns import main


def test_both_tables_are_in_the_kernel_and_one_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--prefixes", "500", "--sets", "100"])
    lines = capsys.readouterr().out.splitlines()
    (both,) = (line for line in lines if line.endswith("have both next hops"))
    (left,) = (line for line in lines if line.endswith("routes are left"))
    # Prefixes are drawn by chance, some of them twice.
    assert 490 <= int(both.split()[0]) == int(left.split()[0]) <= 500
    steps = [line.partition("  ")[0] for line in lines if "longest turn" in line]
    assert steps[:-1] == [
        "table 1",
        "table 2",
        "session lost",
        "session restored",
        "host changed",
        "lost with its routes",
    ]
