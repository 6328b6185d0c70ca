"""A replay begins with the layer of one before while its instructions and files are the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import containerfile

FILE = """\
FROM python AS build
WORKDIR /src
RUN mkdir -p /opt/waggle/bin && printf '#!%s/python3\\n' "$PWD" > /opt/waggle/bin/program
RUN ln -s "$PWD" /opt/waggle/link
COPY lock .
RUN cp lock /opt/waggle/lock && echo > /opt/waggle/of-$(date +%N)
COPY text ./
RUN cp text /opt/waggle/text
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "Containerfile").write_text(FILE)
    for name in ("lock", "text"):
        (tmp_path / name).write_text("1")
    return tmp_path


def replay(sources: Path, name: str) -> tuple[Path, str]:
    """Replay the file; return the folder, and the file with the time of the layer."""
    root = sources / name
    root.mkdir()
    stage = containerfile.read(sources / "Containerfile")["build"]
    containerfile.replay(stage, sources, root, sources / "layers")
    made = root / "opt" / "waggle"
    (when,) = made.glob("of-*")
    return made, when.name


def test_a_layer_is_used_again_and_leads_into_the_new_folder(sources: Path) -> None:
    _, first = replay(sources, "first")
    (sources / "text").write_text("2")
    made, second = replay(sources, "second")
    assert second == first
    assert (made / "text").read_text() == "2"
    assert (made / "bin" / "program").read_text() == f"#!{sources}/second/src/python3\n"
    assert (made / "link").readlink() == sources / "second" / "src"


@pytest.mark.parametrize("name", ["lock", "Containerfile"])
def test_a_layer_of_other_files_or_instructions_is_made(sources: Path, name: str) -> None:
    _, first = replay(sources, "first")
    text = (sources / name).read_text()
    (sources / name).write_text(text.replace("1", "2").replace("mkdir -p", "mkdir -pv"))
    made, second = replay(sources, "second")
    assert second != first
    assert (made / "lock").read_text() == (sources / "lock").read_text()
    # Nothing is left of how they were made.
    kept = [path.name for path in (sources / "layers").iterdir()]
    assert len(kept) == 2
    assert all(re.fullmatch("image-[0-9a-f]{16}", name) for name in kept)
