"""The bench of peers that leave at once: it measures a router, and its limit is held."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import bench_leave
from tests.support.wait import eventually

ROOT = Path(__file__).parents[2]


def run(monkeypatch: pytest.MonkeyPatch, before: float, peak: float) -> int:
    """Return the exit status where this memory was measured."""

    def measured(_: Path, peers: int, prefixes: int) -> tuple[float, float]:
        assert (peers, prefixes) == (100, 1000)
        return before, peak

    monkeypatch.setattr(bench_leave, "measure", measured)
    return bench_leave.main([])


def test_a_peak_above_the_limit_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, 100.0, 119.0) == 0
    assert run(monkeypatch, 100.0, 121.0) == 1
    assert "100 peers with 1000 prefixes each leave at once: 100 MB, 121 MB at most: 1.21" in (
        capsys.readouterr().out
    )


def test_it_is_one_of_the_measurements() -> None:
    (target,) = [
        part for part in (ROOT / "Makefile").read_text().split("\n\n") if "\nbench:" in f"\n{part}"
    ]
    assert "-m bench.bench_leave" in target


@pytest.mark.program
def test_it_measures_a_router_whose_peers_have_the_routes_of_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_leave, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(bench_leave, "LEAVE_SECONDS", 0.0)
    leave = bench_leave.Peers.leave

    def logged(text: str) -> None:
        assert (tmp_path / "log").read_text().count(text) == 3

    def left(peers: bench_leave.Peers) -> None:
        logged(": Established")
        assert peers.received >= 3 * 2 * 50 * 5
        leave(peers)
        eventually(lambda: logged("connection lost"))

    monkeypatch.setattr(bench_leave.Peers, "leave", left)
    before, peak = bench_leave.measure(tmp_path, 3, 50)
    assert 10 < before <= peak + 1
    logged("connection lost")
