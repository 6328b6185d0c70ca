"""A target that no module of the program knows: the runner gives it order, retries and verification."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcilers.sliced_work import Slices
from reconcilers.target import NotNow, Runner, Verification
from reconcilers.target.reconciler import ObjectKey, Parts
from statedb import Database, Index, Snapshot
from tests.reconcilers.target.failures import failures
from tests.reconcilers.target.file_target import Files, Line


@pytest.fixture
def files(tmp_path: Path) -> tuple[Database, Files, Runner]:
    db = Database()
    target = Files(db, tmp_path)
    return db, target, Runner(db, None, [target])


def put(db: Database, files: Files, *rows: Line) -> None:
    with db.write(files.lines) as txn:
        for row in rows:
            files.lines.upsert(txn, row)


def content(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_the_directory_gets_the_files_of_the_table_and_loses_all_others(
    files: tuple[Database, Files, Runner], tmp_path: Path
) -> None:
    db, target, runner = files
    (tmp_path / "stray").write_text("of an earlier process")
    put(db, target, Line("a", "1"), Line("b", "2"))
    assert runner.run(0.0).changed
    assert content(tmp_path) == {"a": "1", "b": "2"}
    with db.write(target.lines) as txn:
        target.lines.delete(txn, "a")
    runner.run(1.0)
    assert content(tmp_path) == {"b": "2"}


def test_a_declared_table_wakes_the_runner_and_a_round_brings_it_up_to_date(
    files: tuple[Database, Files, Runner],
) -> None:
    db, target, runner = files
    woken: list[int] = []
    (wake,) = runner.wakes()
    wake.subscribe(woken.append)
    runner.run(0.0)
    assert not runner.is_outdated()
    put(db, target, Line("a", "1"))
    assert len(woken) == 1
    assert runner.is_outdated()
    runner.run(1.0)
    assert not runner.is_outdated()


def test_a_file_that_cannot_be_written_is_retried_and_delays_no_other_file(
    files: tuple[Database, Files, Runner], tmp_path: Path
) -> None:
    db, target, runner = files
    put(db, target, Line("a/b", "1"), Line("c", "2"))
    summary = runner.run(0.0)
    assert (failures(runner), content(tmp_path)) == (1, {"c": "2"})
    (report,) = runner.reports()
    assert report.failure is not None
    assert report.failure[1].startswith("FileNotFoundError: ")
    (tmp_path / "a").mkdir()
    assert summary.retry_at is not None
    runner.run(summary.retry_at)
    assert failures(runner) == 0
    assert (tmp_path / "a" / "b").read_text() == "1"


def test_a_row_that_is_written_while_the_target_is_at_its_limit_gets_its_file(
    files: tuple[Database, Files, Runner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, target, runner = files
    runner.run(0.0)

    def at_limit(key: ObjectKey, value: str) -> None:
        raise NotNow(10.0, all_objects=True)

    with monkeypatch.context() as patch:
        patch.setattr(target, "set_value", at_limit)
        put(db, target, Line("a", "1"))
        assert runner.run(1.0).retry_at == 11.0
        put(db, target, Line("b", "2"))
        assert runner.run(2.0).retry_at == 11.0
        assert content(tmp_path) == {}
    runner.run(11.0)
    assert content(tmp_path) == {"a": "1", "b": "2"}


def test_verification_repairs_a_file_and_counts_the_drift(
    files: tuple[Database, Files, Runner], tmp_path: Path
) -> None:
    db, target, runner = files
    put(db, target, Line("a", "1"), Line("b", "2"))
    runner.run(0.0)
    (tmp_path / "a").write_text("changed by hand")
    (tmp_path / "b").unlink()
    drifts = [drift for found in Verification(runner).slices() for drift in found]
    found = {(drift.object, drift.different, drift.missing) for drift in drifts}
    assert found == {("a", 1, 0), ("b", 0, 1)}
    assert content(tmp_path) == {"a": "1", "b": "2"}
    assert runner.reports()[0].drifted == 2


def test_a_round_asks_no_reconciler_whose_tables_have_not_changed(
    files: tuple[Database, Files, Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, target, runner = files
    other = db.table("others", Index[str]("key", lambda row: row))
    runner.run(0.0)
    asked: list[Snapshot] = []
    changes = target.changes

    def counted(snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        asked.append(snapshot)
        return changes(snapshot)

    monkeypatch.setattr(target, "changes", counted)
    with db.write(other) as txn:
        other.upsert(txn, "x")
    runner.run(1.0)
    assert not asked
    put(db, target, Line("a", "1"))
    assert runner.run(2.0).due == {"file"}
    assert len(asked) == 1
    monkeypatch.setattr(target, "actual_objects", lambda: 1 / 0)
    runner.queues[0].current = False
    runner.run(3.0)
    runner.run(60.0)
    assert len(asked) == 3, "a listing that has failed is repeated without a change"
