"""Links of the pages: each names a file, and a heading of it, that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")],
    key=lambda page: page.name,
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub forms them."""
    headings = HEADING.findall(CODE.sub("", page.read_text()))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_name_files_and_headings(page: Path) -> None:
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if ":" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


NAMED = re.compile(r"`((?:[\w<>.-]+/)*[\w<>-]+(?:\.(?:py|c|h)|/))(?::\w+)?`")
"""Files and folders, which end with a slash; ``<name>`` is any."""
ROOMS = (
    "bench",
    "cells",
    "cmd",
    "deploy",
    "reconcilers",
    "resources",
    "speaker",
    "statedb",
    "tests",
)


@pytest.mark.parametrize("name", ["architecture.md", "dialects.md", "speaker.md", "statedb.md"])
def test_paths_in_pages_about_the_code_exist(name: str) -> None:
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix != ".pyc"]
    known = "\n".join(f"/{path.relative_to(ROOT)}{'/' * path.is_dir()}" for path in paths)
    known += "".join(f"\n/{room}/" for room in ROOMS)
    missing = [
        text
        for text in NAMED.findall((ROOT / "docs" / name).read_text())
        if "beacon" not in text  # the dialect that a page adds step by step, in tests/dialects
        and not re.search(re.sub(r"<\w+>", r"[^/]+", f"/{text}") + "$", known, re.MULTILINE)
    ]
    assert missing == []
