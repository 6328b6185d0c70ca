"""F57: files that change settle, and objects that seem to be lost are held for a minute."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from resources.manifests.notifications import Change
from resources.manifests.settling import QUIET_SECONDS
from resources.source import Delete
from tests.resources.manifests.directory import NAMES, Directory, node, nodes


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
    tree.pass_(QUIET_SECONDS * 0.9)
    assert tree.observer.labels == {"a": "x"}
    tree.pass_(QUIET_SECONDS * 0.1)
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


def test_a_message_about_a_single_object_is_in_the_singular(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(node("a"))
    tree = Directory(tmp_path)
    (tmp_path / "a.yaml").write_text("")
    tree.rescan()
    (message,) = tree.messages
    assert "is empty; its object is kept until this has lasted for 60 s" in message


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
