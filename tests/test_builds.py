"""Programs that are built while tests run: a test waits for its program, not for later ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import builds


def script(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(f"#!/bin/sh\nset -eu\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_test_waits_for_its_program_and_not_for_later_ones(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = script(tmp_path, "first", f"sleep 0.2; touch {tmp_path}/program")
    second = script(tmp_path, "second", f"while [ ! -e {gate} ]; do sleep 0.05; done")
    program = tmp_path / "program"
    with builds.building(tmp_path / "cache", [first, second]):
        builds.wait(program.exists, tmp_path / "cache")
        assert program.exists()
        assert builds.is_building(tmp_path / "cache")
        gate.touch()
        builds.wait(lambda: False, tmp_path / "cache")
    assert not builds.is_building(tmp_path / "cache")


def test_a_build_that_fails_ends_the_wait_and_the_next_one_is_tried(tmp_path: Path) -> None:
    fails = script(tmp_path, "fails", "exit 1")
    works = script(tmp_path, "works", f"touch {tmp_path}/program")
    with builds.building(tmp_path / "cache", [fails, works]):
        builds.wait(lambda: False, tmp_path / "cache")
    assert (tmp_path / "program").exists()


def test_without_a_build_nothing_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "time", None)  # it would sleep
    builds.wait(lambda: False, tmp_path)


def test_one_process_builds_and_another_process_does_not(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    gate = tmp_path / "gate"
    slow = script(
        tmp_path, "slow", f"echo run >> {runs}; while [ ! -e {gate} ]; do sleep 0.05; done"
    )
    cache = tmp_path / "cache"
    with builds.building(cache, [slow]):
        builds.wait(runs.exists, cache)
        with builds.building(cache, [slow]):
            assert builds.is_building(cache)
        gate.touch()
        builds.wait(lambda: False, cache)
    assert runs.read_text() == "run\n"


def test_a_build_that_is_not_done_ends_with_the_tests(tmp_path: Path) -> None:
    endless = script(tmp_path, "endless", "sleep 600")
    with builds.building(tmp_path, [endless]):
        assert builds.is_building(tmp_path)
    assert not builds.is_building(tmp_path)
