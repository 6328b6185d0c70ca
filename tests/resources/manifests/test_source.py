"""The source of manifests: what it reads, and what it emits."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from resources.manifests import source as module
from resources.manifests.load import UnreadablePathError, load, read_file
from resources.manifests.notifications import Notifications
from resources.manifests.source import LARGE_FILE, ManifestsSource
from resources.source import Replace
from tests.resources.manifests.directory import MessageCounts, node, read
from tests.support.kinds import KINDS
from tests.support.wait import until


def test_the_first_pass_is_a_replacement_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(node("a"))
    _, observer = read(tmp_path)
    (event,) = observer.events
    assert isinstance(event, Replace)
    assert observer.labels == {"a": "x"}


def test_objects_keep_the_order_of_their_file(tmp_path: Path) -> None:
    names = [f"node-{number}" for number in range(20)]
    (tmp_path / "a.yaml").write_text("---\n".join(map(node, names)))
    _, observer = read(tmp_path)
    assert list(observer.labels) == names


def test_only_changed_objects_are_emitted(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(node("a") + "---\n" + node("b"))
    source, observer = read(tmp_path)
    (tmp_path / "a.yaml").write_text(node("a") + "---\n" + node("b", "changed"))
    source.rescan()
    assert len(observer.events) == 2
    assert observer.labels == {"a": "x", "b": "changed"}
    (tmp_path / "c.yaml").write_text(node("c"))
    source.rescan()
    (tmp_path / "a.yaml").unlink()
    source.rescan()
    assert observer.labels == {"c": "x"}


def test_f56_a_broken_file_keeps_the_last_valid_version_with_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(node("a"))
    source, observer = read(tmp_path)
    file.write_text(node("a", "new") + "  broken: [")
    source.rescan()
    assert observer.labels == {"a": "x"}
    assert [p.file for p in observer.problems] == [str(file)]
    file.write_text(node("a", "new"))
    source.rescan()
    assert observer.labels == {"a": "new"}
    assert observer.problems == ()


def test_f56_an_invalid_object_keeps_its_last_good_version(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(node("a") + "---\n" + node("b"))
    source, observer = read(tmp_path)
    file.write_text(
        node("a", "new") + "---\n" + node("b", "new") + "spec: {podCIDRs: [10.0.0.1/8]}\n"
    )
    source.rescan()
    assert observer.labels == {"a": "new", "b": "x"}
    (problem,) = observer.problems
    assert (problem.field, problem.document) == ("spec.podCIDRs[0]", 2)
    assert str(problem.object) == "Node/b"


def test_h52_of_two_files_with_one_object_the_first_by_path_is_used(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(node("n", "second"))
    (tmp_path / "a.yaml").write_text(node("n", "first"))
    source, observer = read(tmp_path)
    assert observer.labels == {"n": "first"}
    (problem,) = observer.problems
    assert problem.file.endswith("b.yaml")
    assert "a.yaml" in problem.message
    (tmp_path / "a.yaml").unlink()
    source.rescan()
    assert observer.labels == {"n": "second"}
    assert observer.problems == ()


def test_h52_a_duplicate_object_in_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(node("n", "first") + "---\n" + node("n", "second"))
    _, observer = read(tmp_path)
    assert observer.labels == {"n": "first"}
    assert "twice" in observer.problems[0].message


def test_h52_swap_and_hidden_files_are_ignored(tmp_path: Path) -> None:
    for name in (".a.yaml.swp", ".#a.yaml", "a.yaml~", "4913", "#a.yaml#", "notes.txt"):
        (tmp_path / name).write_text("not: [yaml")
    _, observer = read(tmp_path)
    assert observer.problems == ()


def test_h52_a_fifo_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    _, observer = read(tmp_path)
    assert observer.problems[0].message == "is not a regular file"


def test_h52_links_out_of_the_tree_and_loops_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "n.yaml").write_text(node("outside"))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link.yaml").symlink_to(outside / "n.yaml")
    (tree / "loop").symlink_to(tree)
    (tree / "n.yaml").write_text(node("inside"))
    _, observer = read(tree)
    assert "outside" not in observer.labels
    assert observer.labels["inside"] == "x"


def test_h52_the_links_of_a_config_map_are_followed_and_its_swap_is_read(tmp_path: Path) -> None:
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "n.yaml").write_text(node("n", f"v{version}"))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "n.yaml").symlink_to("..data/n.yaml")
    source, observer = read(tmp_path)
    assert observer.labels == {"n": "v1"}
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    source.rescan()
    assert observer.labels == {"n": "v2"}


def test_h52_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.manifests.parse.MAX_YAML", 10)
    (tmp_path / "a.yaml").write_text(node("a"))
    _, observer = read(tmp_path)
    assert observer.labels == {}
    assert "are not read" in observer.problems[0].message


def test_h52_a_directory_that_is_deleted_and_created_again_is_read(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "n.yaml").write_text(node("n"))
    source, observer = read(tree)
    (tree / "n.yaml").unlink()
    tree.rmdir()
    source.rescan()
    assert observer.labels == {"n": "x"}
    assert any("there is no such file or directory" in text for text in source.messages)
    tree.mkdir()
    (tree / "n.yaml").write_text(node("n", "back"))
    source.rescan()
    assert observer.labels == {"n": "back"}
    assert source.messages == []


def test_loading_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadablePathError, match="no such file"):
        load([str(tmp_path / "none")], KINDS)


def test_changes_of_a_watched_directory_are_emitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.manifests.source.SCAN_INTERVAL_SECONDS", 60.0)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "n.yaml").write_text(node("n"))

    async def watch() -> None:
        source = ManifestsSource([tree], KINDS)
        observer = MessageCounts(source)
        running = asyncio.create_task(source.run())
        try:
            await until(lambda: observer.labels == {"n": "x"})
            (tree / "n.yaml").write_text(node("n", "edited"))
            await until(lambda: observer.labels == {"n": "edited"})
            (tree / "below").mkdir()
            (tree / "below" / "m.yaml").write_text(node("m"))
            await until(lambda: observer.labels.keys() == {"n", "m"})
            temporary = tree / ".n.yaml.tmp"
            temporary.write_text(node("n", "renamed"))
            temporary.rename(tree / "n.yaml")
            await until(lambda: observer.labels["n"] == "renamed")
            (tree / "n.yaml").unlink()
            await until(lambda: observer.labels.keys() == {"m"})
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(watch())


def test_a_request_finds_what_the_kernel_does_not_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notifications, "watch", lambda *_: False)
    monkeypatch.setattr("resources.manifests.source.SCAN_INTERVAL_SECONDS", 3600.0)
    (tmp_path / "n.yaml").write_text(node("n"))

    async def watch() -> None:
        source = ManifestsSource([tmp_path], KINDS)
        observer = MessageCounts(source)
        running = asyncio.create_task(source.run())
        try:
            await until(lambda: observer.labels == {"n": "x"})
            (tmp_path / "n.yaml").write_text(node("n", "edited"))
            source.rescan()
            await until(lambda: observer.labels == {"n": "edited"})
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(watch())


def test_a_large_file_is_read_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    def read(path: str, size: int, parse: Any) -> Any:  # noqa: ANN401
        threads.append(threading.current_thread() is not threading.main_thread())
        return read_file(path, size, parse)

    monkeypatch.setattr(module, "read_file", read)
    file = tmp_path / "a.yaml"
    file.write_text(node("n1", "old"))
    source = ManifestsSource([tmp_path], KINDS)
    found = MessageCounts(source)

    async def watch() -> None:
        running = asyncio.create_task(source.run())
        try:
            await until(lambda: found.labels == {"n1": "old"})
            file.write_text("#" * LARGE_FILE + "\n" + node("n1", "new"))
            await until(lambda: found.labels == {"n1": "new"})
            file.write_text(node("n1", "small"))
            await until(lambda: found.labels == {"n1": "small"})
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(watch())
    assert threads == [False, True, False]
    threads.clear()
    large = "#" * LARGE_FILE + "\n" + node("n1", "large")
    file.write_text(large)
    (tmp_path / "b.yaml").write_text(node("n2", "small"))
    source = ManifestsSource([tmp_path], KINDS)
    found = MessageCounts(source)

    async def start() -> None:
        running = asyncio.create_task(source.run())
        try:
            await until(lambda: found.labels == {"n1": "large", "n2": "small"})
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(start())
    assert threads == [True, False]


def test_a_start_with_many_files_does_other_work_between_two_of_them(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.yaml").write_text(node(f"n{number}", "small"))
    source = ManifestsSource([tmp_path], KINDS)
    found = MessageCounts(source)
    turns = 0

    async def start() -> None:
        nonlocal turns
        running = asyncio.create_task(source.run())
        try:
            while not running.done() and len(found.labels) < 20:
                turns += bool(source._signatures)
                await asyncio.sleep(0)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(start())
    assert turns >= 19
