"""F58: the last valid objects of a broken file, over a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from resources.manifests.last_valid import decode, encode
from resources.meta import Resource
from resources.state_file import StateFileError
from tests.resources.manifests.directory import NAMES, Directory, node, nodes
from tests.support.kinds import KINDS


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
