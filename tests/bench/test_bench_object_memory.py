"""The bench of objects that change: each change has reached the agent, and a goal is compared."""

from __future__ import annotations

import pytest

from bench import bench_object_memory, frrk8s_workload


@pytest.mark.parametrize(("most", "verdict", "status"), [(1e6, "met", 0), (1.0, "MISSED", 1)])
def test_memory_is_printed_after_each_change_and_compared_after_the_last(
    most: float,
    verdict: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measured(_: object, objects: list[object], changes: int) -> list[float]:
        return [float(len(objects))] * (1 + changes)

    case = bench_object_memory.Case("some objects", lambda: [{}, {}], most)
    monkeypatch.setattr(bench_object_memory, "CASES", {"few": case})
    monkeypatch.setattr(bench_object_memory, "measure", measured)
    assert bench_object_memory.main(["--changes", "2"]) == status
    assert capsys.readouterr().out == f"some objects: 2 2 2 MB (goal {most:g}, {verdict})\n"


def test_an_agent_reads_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_object_memory, "IDLE_SECONDS", 1.0)
    objects = frrk8s_workload.parts(100, 50, 2, port=bench_object_memory.PORT)
    # Without CPU time for the change it does not end.
    found = list(bench_object_memory.measure(bench_object_memory.ROOT, objects, 1))
    assert len(found) == 2
    assert min(found) > 20
