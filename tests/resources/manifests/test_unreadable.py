"""Entries that cannot be read: each is its own problem, whatever the system call raises (H52, F56).

Faults are injected into the calls of the operating system, one error number after the other.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from asyncinotify import Inotify

from resources.manifests.last_valid import encode
from resources.manifests.load import UnreadablePathError, load
from resources.manifests.notifications import Change, Notifications
from resources.manifests.source import ManifestsSource
from tests.resources.manifests.directory import Directory, MessageCounts, node
from tests.support.kinds import KINDS
from tests.support.wait import until

ERRNOS: Final = sorted(errno.errorcode)
TYPICAL: Final = [
    *{type(OSError(number, "")): number for number in reversed(ERRNOS)}.values(),
    *(errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE, errno.EMFILE),
]
"""One number of each class of OSError, and the other errors that reading raises."""
HOLD: Final = 5.0
"""Seconds for which a loss has to last here."""
GONE: Final = {errno.ENOENT, errno.ENOTDIR}
"""Errors of an entry that does not exist (any more)."""


class Entry:
    """An entry of a directory, of which calls fail."""

    def __init__(self, entry: os.DirEntry[str], faults: Faults) -> None:
        self._entry = entry
        self._faults = faults
        self.name = entry.name
        self.path = entry.path

    def _checked(self, call: str) -> bool:
        self._faults.check(call, self.path)
        return bool(getattr(self._entry, call)())

    def is_symlink(self) -> bool:
        return self._checked("is_symlink")

    def is_dir(self) -> bool:
        return self._checked("is_dir")

    def stat(self) -> os.stat_result:
        self._faults.check("stat", self.path)
        return self._entry.stat()


class Faults:
    """Lets a call fail for a path, and for what is below it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._fault: tuple[str, str, int] | None = None
        self._before_reading(monkeypatch, os, "stat", "stat")
        self._before_reading(monkeypatch, os, "readlink", "readlink")
        self._before_reading(monkeypatch, io, "open", "open")
        listed = os.scandir

        @contextmanager
        def scandir(path: str) -> Iterator[Iterator[Entry]]:
            self.check("opendir", path)
            with listed(path) as entries:
                yield self._entries(path, entries)

        monkeypatch.setattr(os, "scandir", scandir)

    def _before_reading(
        self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, call: str
    ) -> None:
        real = getattr(module, name)

        def checked(path: object, *args: object, **kwargs: object) -> object:
            self.check(call, str(path))
            return real(path, *args, **kwargs)

        monkeypatch.setattr(module, name, checked)

    def _entries(self, path: str, entries: Iterator[os.DirEntry[str]]) -> Iterator[Entry]:
        for entry in entries:
            self.check("readdir", path)
            yield Entry(entry, self)

    def check(self, call: str, path: str) -> None:
        """Raise the fault that is in effect for this call and path."""
        if self._fault is None:
            return
        failing, where, number = self._fault
        if call == failing and (path == where or path.startswith(where + os.sep)):
            raise OSError(number, os.strerror(number), path)

    @contextmanager
    def fault(self, call: str, where: Path, number: int) -> Iterator[None]:
        self._fault = (call, str(where), number)
        try:
            yield
        finally:
            self._fault = None


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def make_tree(tree: Path) -> None:
    """Make a directory with a manifest, a directory, a link to a file and one to a directory."""
    (tree / "below").mkdir(parents=True)
    (tree / ".hidden").mkdir()
    for path in ("a.yaml", "bad.yaml", "below/c.yaml", ".hidden/d.yaml", ".hidden/e.yaml"):
        (tree / path).write_text(node(Path(path).stem))
    (tree / "link.yaml").symlink_to(".hidden/d.yaml")
    (tree / "folder").mkdir()
    (tree / "folder" / "e.yaml").symlink_to("../.hidden/e.yaml")
    (tree / "linked").symlink_to("below")


ALL: Final = {"a", "bad", "c", "d", "e"}

CALLS: Final = [
    ("stat", "bad.yaml"),
    ("open", "bad.yaml"),
    ("is_symlink", "bad.yaml"),
    ("is_dir", "bad.yaml"),
    ("stat", "link.yaml"),
    ("readlink", "link.yaml"),
    ("stat", "linked"),
    ("readlink", "linked"),
    ("is_symlink", "below"),
    ("is_dir", "below"),
    ("opendir", "below"),
    ("readdir", "below"),
]
"""Calls that concern one entry."""


@pytest.mark.parametrize(("call", "name"), CALLS)
def test_an_entry_that_cannot_be_read_is_a_problem_of_that_entry(
    call: str, name: str, tmp_path: Path, faults: Faults
) -> None:
    make_tree(tmp_path)
    directory = Directory(tmp_path, HOLD)
    whole = directory.messages  # the objects of two paths
    for number in ERRNOS:
        label = f"e{number}"
        for changed in ("a", "bad"):
            (tmp_path / f"{changed}.yaml").write_text(node(changed, label))
        with faults.fault(call, tmp_path / name, number):
            directory.stay(2 * HOLD)
            assert directory.observer.labels["a"] == label
            if number not in GONE:
                assert directory.observer.labels.keys() == ALL, number
                reason = f"{tmp_path / name}: cannot be read: {os.strerror(number)}"
                assert reason in "\n".join(directory.messages), number
            problems = load([str(tmp_path)], KINDS).problems
            assert number in GONE or any(str(tmp_path / name) in str(p) for p in problems), number
        directory.rescan()
        assert directory.messages == whole, number
        assert directory.observer.labels.keys() == ALL, number
        assert directory.observer.labels["bad"] == label, number


@pytest.mark.parametrize(("call", "name"), CALLS)
def test_an_entry_that_cannot_be_read_at_the_start_is_read_later(
    call: str, name: str, tmp_path: Path, faults: Faults
) -> None:
    make_tree(tmp_path)
    whole = Directory(tmp_path).messages
    for number in TYPICAL:
        with faults.fault(call, tmp_path / name, number):
            directory = Directory(tmp_path, HOLD)
            assert directory.observer.labels["a"] == "x", number
        directory.rescan()
        assert directory.messages == whole, number
        assert directory.observer.labels.keys() == ALL, number


@pytest.mark.parametrize("call", ["stat", "opendir", "readdir"])
def test_a_root_that_cannot_be_read_keeps_its_objects(
    call: str, tmp_path: Path, faults: Faults
) -> None:
    for number in set(TYPICAL) - GONE:
        tree = tmp_path / str(number)
        make_tree(tree)
        directory = Directory(tree, HOLD)
        whole = directory.messages
        with faults.fault(call, tree, number):
            directory.stay(2 * HOLD)
            assert directory.observer.labels.keys() == ALL
            assert any(f"{tree}: cannot be read" in text for text in directory.messages)
            at_start = Directory(tree)
            assert at_start.observer.labels == {}
        for source in (directory, at_start):
            source.stay(5.0)
            assert source.messages == whole
            assert source.observer.labels.keys() == ALL


def test_what_cannot_be_read_confirms_no_loss(tmp_path: Path, faults: Faults) -> None:
    """The directory is unmounted (empty), fails, is away, fails, and comes back."""
    for number in set(TYPICAL) - GONE:
        tree, away = tmp_path / str(number), tmp_path / f"{number}-away"
        make_tree(tree)
        directory = Directory(tree, HOLD)
        for is_empty in (True, False):
            tree.rename(away)
            if is_empty:
                tree.mkdir()
            directory.stay(HOLD / 2)
            with faults.fault("opendir", tree, number), faults.fault("stat", tree, number):
                directory.stay(2 * HOLD)
                assert directory.observer.labels.keys() == ALL, number
            if tree.exists():
                tree.rmdir()
            away.rename(tree)
            directory.stay(5.0)
            assert directory.observer.labels.keys() == ALL, number


def test_a_directory_that_is_replaced_or_becomes_a_file_is_followed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    make_tree(tree)
    directory = Directory(tree, HOLD)
    whole = directory.messages
    (tree / "below").rename(tmp_path / "below")
    (tree / "below").write_text("now a file\n")
    directory.stay(HOLD / 2)
    assert directory.observer.labels.keys() == ALL
    assert any("c.yaml" in text or "below" in text for text in directory.messages)
    directory.stay(HOLD)
    assert directory.observer.labels.keys() == ALL - {"c"}
    (tree / "below").unlink()
    (tmp_path / "below").rename(tree / "below")
    directory.stay(5.0)
    assert directory.observer.labels.keys() == ALL
    other = tmp_path / "other"
    make_tree(other)
    (other / "a.yaml").write_text(node("a", "other"))
    tree.rename(tmp_path / "former")
    other.rename(tree)
    directory.stay(5.0)
    assert directory.observer.labels["a"] == "other"
    assert directory.messages == whole


LINKS: Final = {
    "to itself": "loop.yaml",
    "to a name of 300 letters": "x" * 300,
    "to a path of 4,000 letters": "/".join(["y" * 199] * 20),
    "into a file": "a.yaml/b.yaml",
}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("name", ["loop.yaml", "loop"])
def test_h52_a_link_that_leads_nowhere_stops_nothing(
    name: str, target: str, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(node("a"))
    directory = Directory(tmp_path)
    (tmp_path / name).symlink_to(target.replace("loop.yaml", name))
    directory.rescan()
    (tmp_path / "a.yaml").write_text(node("a", "edited"))
    directory.rescan()
    assert directory.observer.labels == {"a": "edited"}
    (message,) = directory.messages
    assert message.startswith(f"{tmp_path / name}: ")
    (problem,) = load([str(tmp_path)], KINDS).problems
    assert str(problem) == message
    assert Directory(tmp_path).messages == [message]
    (tmp_path / name).unlink()
    (tmp_path / name).write_text("no manifest\n" if name == "loop" else node("b"))
    directory.stay(5.0)
    assert directory.messages == []
    assert directory.observer.labels.keys() == ({"a"} if name == "loop" else {"a", "b"})


def test_h52_a_link_without_its_target_is_named_and_its_objects_are_gone(tmp_path: Path) -> None:
    (tmp_path / ".kept").mkdir()
    (tmp_path / ".kept" / "b.yaml").write_text(node("b"))
    (tmp_path / "a.yaml").write_text(node("a"))
    (tmp_path / "b.yaml").symlink_to(".kept/b.yaml")
    directory = Directory(tmp_path)
    assert directory.observer.labels.keys() == {"a", "b"}
    (tmp_path / ".kept" / "b.yaml").unlink()
    directory.rescan()
    assert directory.observer.labels.keys() == {"a"}
    text = f"{tmp_path / 'b.yaml'}: is a link to a file that does not exist"
    assert directory.messages == [text]
    assert [str(problem) for problem in load([str(tmp_path)], KINDS).problems] == [text]
    (tmp_path / ".kept" / "b.yaml").write_text(node("b"))
    directory.rescan()
    assert directory.observer.labels.keys() == {"a", "b"}
    assert directory.messages == []


def test_f57_a_directory_of_links_without_targets_is_empty(tmp_path: Path) -> None:
    """The volume of a ConfigMap whose ``..data`` is away."""
    (tmp_path / "..1").mkdir()
    (tmp_path / "..1" / "a.yaml").write_text(node("a"))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    directory = Directory(tmp_path, HOLD)
    (tmp_path / "..data").unlink()
    directory.stay(HOLD / 2)
    assert directory.observer.labels.keys() == {"a"}
    directory.stay(HOLD)
    assert directory.observer.labels == {}


def test_h52_links_to_the_directories_above_them_are_not_followed(tmp_path: Path) -> None:
    """Followed to some depth, ten of them would be billions of directories."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.yaml").write_text(node("a"))
    for number in range(10):
        (tmp_path / "below" / f"l{number}").symlink_to("." if number % 2 else "..")
    directory = Directory(tmp_path)
    assert directory.observer.labels.keys() == {"a"}
    assert directory.messages == []


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_h52_a_name_that_is_not_utf_8_is_a_problem(kind: str, tmp_path: Path) -> None:
    """It would be in messages, documents and files of the state directory, which are UTF-8."""
    (tmp_path / "a.yaml").write_text(node("a"))
    bad = os.fsdecode(os.fsencode(tmp_path) + b"/b\xff.yaml")
    directory = Directory(tmp_path)
    if kind == "file":
        Path(bad).write_text(node("b"))
    elif kind == "directory":
        Path(bad).mkdir()
        (Path(bad) / "b.yaml").write_text(node("b"))
    else:
        Path(bad).symlink_to("a.yaml")
    assert not directory.source.note(Change(str(tmp_path), Path(bad).name, whole=True))
    directory.rescan()
    (tmp_path / "a.yaml").write_text(node("a", "edited"))
    directory.rescan()
    assert directory.messages == [f"{tmp_path}/b\\xff.yaml: its name is not UTF-8"]
    assert directory.observer.labels == {"a": "edited"}
    b"".join(encode(directory.source.kept()))
    with pytest.raises(UnreadablePathError, match="its name is not UTF-8"):
        load([bad], KINDS)
    shutil.move(bad, tmp_path / "b.txt")
    directory.rescan()
    assert directory.messages == []


def run_in_loop(
    test: Callable[[ManifestsSource], Awaitable[None]], source: ManifestsSource
) -> None:
    async def run() -> None:
        running = asyncio.create_task(source.run())
        try:
            await test(source)
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize("call", ["__init__", "add_watch", "sync_get"])
def test_a_watch_that_the_kernel_refuses_is_a_problem_and_is_tried_again(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        for number in set(ERRNOS) - (GONE if call == "add_watch" else set()):

            def refuse(*_: object, number: int = number, **__: object) -> None:
                raise OSError(number, os.strerror(number))

            with Notifications() as notifications:
                with monkeypatch.context() as refused:
                    refused.setattr(Inotify, call, refuse)
                    is_new = notifications.watch([str(tmp_path)])
                    assert is_new == (call == "sync_get")
                    changes, scan = notifications.take()
                    assert changes == []
                    assert notifications.errors == {str(tmp_path): os.strerror(number)}
                    # What was reported meanwhile is found by a scan at once.
                    assert (scan or notifications.take()[1]) == (call == "sync_get")
                assert notifications.watch([str(tmp_path)])
                assert notifications.errors == {}
                (tmp_path / "a.yaml").write_text(node("a"))
                await notifications.wait(1.0)
                changes, _ = notifications.take()
                assert {change.name for change in changes} == {"a.yaml"}

    asyncio.run(check())


def test_a_source_without_watches_scans_and_names_the_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Inotify, "add_watch", refuse)
    monkeypatch.setattr("resources.manifests.source.SCAN_INTERVAL_SECONDS", 0.05)
    source = ManifestsSource([tmp_path], KINDS)
    observer = MessageCounts(source)

    async def test(_: ManifestsSource) -> None:
        await until(lambda: observer.labels.keys() == ALL)
        text = "changes are found by scans only, here and in "
        await until(lambda: any(text in problem.message for problem in observer.problems))
        (tmp_path / "a.yaml").write_text(node("a", "edited"))
        await until(lambda: observer.labels["a"] == "edited")

    run_in_loop(test, source)
