"""The watched directory: events, last good versions, duplicates, and unusual files (H52, F56)."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from resources.manifests import ManifestsSource, UnreadablePathError, load
from resources.manifests import source as module
from resources.manifests.files import scan
from resources.manifests.last_valid import decode, encode
from resources.manifests.load import read_file
from resources.manifests.notifications import Change, Notifications
from resources.manifests.settling import QUIET_SECONDS
from resources.manifests.source import LARGE_FILE
from resources.meta import Resource
from resources.source import Delete, Event, Replace, SourceProblem, Upsert
from resources.state_file import StateFileError
from tests.support.kinds import KINDS, NODE
from tests.support.wait import until


def node(name: str, label: str = "x") -> str:
    """Return a Node's manifest."""
    return f"apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  labels: {{l: {label}}}\n"


class MessageCounts:
    """The labels of the Nodes, as a source's events give them."""

    def __init__(self, source: ManifestsSource) -> None:
        self.labels: dict[str, str] = {}
        self.events: list[Event] = []
        self.problems: tuple[SourceProblem, ...] = ()
        source.events(NODE).subscribe(self._event)
        source.problems.subscribe(self._problems)

    def _event(self, event: Event) -> None:
        self.events.append(event)
        match event:
            case Replace(objects):
                self.labels = {row.metadata.name: row.metadata.labels["l"] for row in objects}
            case Upsert(row):
                self.labels[row.metadata.name] = row.metadata.labels["l"]
            case Delete(key):
                del self.labels[key[1]]

    def _problems(self, problems: tuple[SourceProblem, ...]) -> None:
        self.problems = problems


class Directory:
    """A source of one directory, read once, whose clock stands until `pass_`."""

    def __init__(
        self,
        directory: Path,
        hold: float = 60.0,
        restored: Mapping[str, Sequence[tuple[str, Resource]]] | None = None,
    ) -> None:
        self.directory = directory
        self.now = 1000.0
        self.source = ManifestsSource([directory], KINDS, hold=hold, clock=lambda: self.now)
        self.observer = MessageCounts(self.source)
        if restored is not None:
            self.source.restore(restored)
        self.source.read_all()

    def pass_(self, seconds: float) -> None:
        """Let time pass, without a scan."""
        self.now += seconds
        self.source.read_settled()

    def scan(self) -> None:
        """Scan the tree now, without waiting for changed files to settle."""
        self.source.compare(scan([str(self.directory)]))

    def rescan(self) -> None:
        """Scan, wait until changed files have settled, and read them."""
        self.scan()
        self.pass_(QUIET_SECONDS)

    def stay(self, seconds: float) -> None:
        """Let time pass with a scan every five seconds."""
        until = self.now + seconds
        while self.now < until:
            self.pass_(min(5.0, until - self.now))
            self.rescan()

    @property
    def messages(self) -> list[str]:
        """The problems."""
        return [str(problem) for problem in self.observer.problems]


def read(directory: Path) -> tuple[Directory, MessageCounts]:
    """Read a directory once; `rescan` reads what changed."""
    source = Directory(directory)
    return source, source.observer


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


def nodes(names: Iterable[str], label: str = "x") -> str:
    return "---\n".join(node(name, label) for name in names)


NAMES = [f"n{number}" for number in range(10)]


def test_f57_a_file_that_changes_settles_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(node("a"))
    tree = Directory(tmp_path)
    file.write_text(node("a", "half"))
    tree.scan()
    tree.pass_(0.06)
    file.write_text(node("a", "whole") + "# more\n")
    tree.scan()
    tree.pass_(0.06)
    assert tree.observer.labels == {"a": "x"}
    tree.pass_(0.05)
    assert tree.observer.labels == {"a": "whole"}


def test_f57_a_file_that_has_changed_since_its_last_event_settles_again(tmp_path: Path) -> None:
    """The event of the second change is still on its way when the file is due."""
    file = tmp_path / "a.yaml"
    file.write_text(node("a"))
    tree = Directory(tmp_path)
    file.write_text(node("a", "half"))
    tree.scan()
    file.write_text(node("a", "whole") + "# more\n")
    tree.pass_(QUIET_SECONDS)
    assert tree.observer.labels == {"a": "x"}
    tree.pass_(QUIET_SECONDS)
    assert tree.observer.labels == {"a": "whole"}


def test_f57_a_file_that_never_rests_is_read_after_two_seconds(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(node("a"))
    tree = Directory(tmp_path)
    for size in range(30):
        file.write_text(node("a", "new") + "#" * size)
        tree.scan()
        tree.pass_(0.08)
    assert tree.observer.labels == {"a": "new"}


def test_f57_a_file_removed_and_written_again_at_once_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(node("a"))
    (tmp_path / "b.yaml").write_text(node("b"))
    tree = Directory(tmp_path)
    (tmp_path / "a.yaml").unlink()
    tree.scan()
    tree.pass_(0.05)
    (tmp_path / "a.yaml").write_text(node("a"))
    tree.rescan()
    tree.pass_(1.0)
    assert tree.observer.labels == {"a": "x", "b": "x"}
    assert not any(isinstance(event, Delete) for event in tree.observer.events)


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", nodes(NAMES[:5])], ids=["empty", "comment", "half"]
)
def test_f57_a_file_cut_in_its_place_keeps_its_objects_for_a_minute(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "a.yaml").write_text(nodes(NAMES))
    (tmp_path / "b.yaml").write_text(node("b"))
    tree = Directory(tmp_path)
    (tmp_path / "a.yaml").write_text(content)
    tree.rescan()
    assert list(tree.observer.labels) == [*NAMES, "b"]
    (message,) = tree.messages
    assert "are kept until this has lasted for 60 s (--mass-withdraw-hold)" in message
    tree.stay(55.0)
    assert list(tree.observer.labels) == [*NAMES, "b"]
    tree.stay(10.0)
    assert set(tree.observer.labels) == {*(NAMES[:5] if "Node" in content else ()), "b"}
    assert tree.messages == []


def test_f57_the_last_object_of_a_cut_file_may_be_incomplete_and_keeps_its_version(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(nodes(NAMES))
    tree = Directory(tmp_path)
    text = nodes(NAMES)
    file.write_text(text[: text.index("labels", text.index("name: n5"))] + "labels: {l: cut}\n")
    tree.rescan()
    assert tree.observer.labels == dict.fromkeys(NAMES, "x")


def test_f57_a_file_whose_second_half_comes_later_is_never_seen_without_it(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(nodes(NAMES))
    tree = Directory(tmp_path)
    file.write_text(nodes(NAMES[:5], "new"))
    tree.stay(20.0)
    assert list(tree.observer.labels) == NAMES
    file.write_text(nodes(NAMES, "new"))
    tree.rescan()
    assert tree.observer.labels == dict.fromkeys(NAMES, "new")
    assert tree.messages == []
    assert not any(isinstance(event, Delete) for event in tree.observer.events)


def test_f57_a_file_with_other_objects_or_without_one_acts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(nodes(["a", "b", "c"]))
    tree = Directory(tmp_path)
    file.write_text(nodes(["a", "b"]))
    tree.rescan()
    assert set(tree.observer.labels) == {"a", "b"}
    file.write_text(nodes(["d", "e"]))
    tree.rescan()
    assert set(tree.observer.labels) == {"d", "e"}


def test_f57_a_file_that_is_replaced_by_renaming_acts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(nodes(NAMES))
    tree = Directory(tmp_path)
    (tmp_path / ".new").write_text(node("n0"))
    (tmp_path / ".new").replace(file)
    tree.rescan()
    assert set(tree.observer.labels) == {"n0"}


def empty(tree: Path) -> None:
    for file in tree.glob("*.yaml"):
        file.unlink()


def away(tree: Path) -> None:
    shutil.rmtree(tree)


@pytest.mark.parametrize(("lose", "text"), [(empty, "has no manifests"), (away, "is not there")])
def test_f57_a_directory_that_is_empty_or_away_keeps_its_objects_for_a_minute(
    tmp_path: Path, lose: Callable[[Path], None], text: str
) -> None:
    directory = tmp_path / "tree"
    directory.mkdir()
    for name in NAMES:
        (directory / f"{name}.yaml").write_text(node(name))
    tree = Directory(directory)
    lose(directory)
    tree.rescan()
    assert list(tree.observer.labels) == NAMES
    assert [m for m in tree.messages if f"{text} any more; its 10 objects are kept" in m]
    tree.stay(55.0)
    assert list(tree.observer.labels) == NAMES
    tree.stay(10.0)
    assert tree.observer.labels == {}


def test_f57_a_directory_that_is_written_again_slowly_loses_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "tree"
    directory.mkdir()
    for name in NAMES:
        (directory / f"{name}.yaml").write_text(node(name))
    tree = Directory(directory)
    away(directory)
    tree.stay(10.0)
    directory.mkdir()
    for name in NAMES:
        (directory / f"{name}.yaml").write_text(node(name))
        tree.stay(3.0)
    assert list(tree.observer.labels) == NAMES
    assert tree.messages == []
    assert not any(isinstance(event, Delete) for event in tree.observer.events)


def test_f57_files_that_vanish_one_by_one_are_judged_when_the_last_is_gone(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.yaml").write_text(node(name))
    tree = Directory(tmp_path)
    for name in NAMES:
        (tmp_path / f"{name}.yaml").unlink()
        tree.source.note(Change(str(tmp_path), f"{name}.yaml", whole=False))
        tree.pass_(0.09)
    tree.pass_(1.0)
    assert list(tree.observer.labels) == NAMES


def test_f57_a_file_deleted_from_a_directory_with_others_acts_at_once(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.yaml").write_text(node(name))
    tree = Directory(tmp_path)
    for name in NAMES[1:]:
        (tmp_path / f"{name}.yaml").unlink()
    tree.rescan()
    assert list(tree.observer.labels) == ["n0"]
    assert tree.messages == []


def test_f57_a_directory_with_manifests_below_it_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.yaml").write_text(node("b"))
    (tmp_path / "a.yaml").write_text(node("a"))
    tree = Directory(tmp_path)
    (tmp_path / "a.yaml").unlink()
    tree.rescan()
    assert set(tree.observer.labels) == {"b"}


def test_f57_an_unreadable_directory_keeps_its_objects_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text(node("a"))
    tree = Directory(tmp_path)

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.scandir", refuse)
    tree.stay(300.0)
    assert tree.observer.labels == {"a": "x"}
    assert tree.messages == [f"{tmp_path}: cannot be read: Permission denied"]
    monkeypatch.undo()
    tree.rescan()
    assert tree.messages == []


def test_f57_without_a_hold_time_everything_acts_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(nodes(NAMES))
    tree = Directory(tmp_path, hold=0.0)
    (tmp_path / "a.yaml").write_text(nodes(NAMES[:3]))
    tree.rescan()
    assert list(tree.observer.labels) == NAMES[:3]
    (tmp_path / "a.yaml").unlink()
    tree.rescan()
    assert tree.observer.labels == {}


def kept(directory: Path) -> dict[str, list[tuple[str, Resource]]]:
    """Return what a run over the directory keeps for the next one, as its file has it."""
    return decode(b"".join(encode(Directory(directory).source.kept())), KINDS).files


def test_f58_a_broken_file_has_its_last_valid_objects_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(nodes(["a", "b"]))
    (tmp_path / "c.yaml").write_text(node("c"))
    state = kept(tmp_path)
    (tmp_path / "a.yaml").write_text("kind: [")
    (tmp_path / "c.yaml").write_text(node("c", "new") + "spec: {podCIDRs: [10.0.0.1/8]}\n")
    tree = Directory(tmp_path, restored=state)
    assert tree.observer.labels == {"a": "x", "b": "x", "c": "x"}
    assert not any(problem.lost for problem in tree.observer.problems)
    assert len(tree.observer.problems) == 2


def test_f58_without_last_valid_objects_a_broken_file_is_lost(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: [")
    (tmp_path / "c.yaml").write_text(node("c") + "spec: {podCIDRs: [10.0.0.1/8]}\n")
    tree = Directory(tmp_path)
    assert [problem.lost for problem in tree.observer.problems] == [True, True]


def test_f58_a_directory_that_is_empty_at_the_start_is_held_and_a_deleted_file_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.yaml").write_text(node("a"))
    (tmp_path / "c.yaml").write_text(node("c"))
    state = kept(tmp_path)
    (tmp_path / "a.yaml").unlink()
    assert Directory(tmp_path, restored=state).observer.labels == {"c": "x"}
    (tmp_path / "c.yaml").unlink()
    tree = Directory(tmp_path, restored=state)
    assert tree.observer.labels == {"a": "x", "c": "x"}
    tree.stay(65.0)
    assert tree.observer.labels == {}


def test_f58_no_secret_is_kept_for_the_next_start(tmp_path: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: k}\nstringData: {password: hush}\n"
    (tmp_path / "a.yaml").write_text(secret + "---\n" + node("a"))
    octets = b"".join(encode(Directory(tmp_path).source.kept()))
    assert b"hush" not in octets
    assert b"Secret" not in octets
    assert b'"Node"' in octets


@pytest.mark.parametrize(
    "damage", [lambda o: o[:-20], lambda o: o.replace(b"n0", b"n9"), lambda _: b""]
)
def test_f58_a_damaged_state_is_rejected(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.yaml").write_text(nodes(NAMES))
    octets = b"".join(encode(Directory(tmp_path).source.kept()))
    with pytest.raises(StateFileError):
        decode(damage(octets), KINDS)


def test_changes_of_a_watched_directory_are_emitted(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "n.yaml").write_text(node("n"))

    async def watch() -> None:
        source = ManifestsSource([tree], KINDS, scan_interval=60.0)
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
    (tmp_path / "n.yaml").write_text(node("n"))

    async def watch() -> None:
        source = ManifestsSource([tmp_path], KINDS, scan_interval=3600.0)
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
