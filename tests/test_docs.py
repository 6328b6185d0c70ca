"""Names in pages and docstrings: files, headings, modules and members of classes, which all exist."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
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


PRODUCT = [room for room in ROOMS if room != "tests"]
QUOTED = re.compile(r"(?<!`)`(\w+(?:\.\w+)*)`(?!`)")
"""A name of the code in a docstring; ``double`` backticks are literal text."""


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Return the product's modules."""
    paths = (path for room in PRODUCT for path in (ROOT / room).rglob("*.py"))
    return {path: ast.parse(path.read_text()) for path in paths}


@functools.cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """Return the product's classes by name, which several may share."""
    found = defaultdict(list)
    bodies = [tree.body for tree in trees().values()]
    while bodies:
        for statement in bodies.pop():
            if isinstance(statement, ast.ClassDef):
                found[statement.name].append(statement)
            bodies.append(getattr(statement, "body", []))
    return dict(found)


def members(name: str, derived: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of methods, fields and attributes of the classes of a name and their bases."""
    for definition in classes().get(name, ()):
        for node in ast.walk(definition):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
        for base in definition.bases:
            base_name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
            if base_name not in derived:
                yield from members(base_name, (*derived, name))


def names_of(tree: ast.Module) -> Iterator[str]:
    """Yield what a module defines, imports, or lists as a text: a package may import on use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").exists()


def places(text: str, folder: Path) -> list[Path]:
    """Return the folders with the first part of a dotted name."""
    first = text.partition(".")[0]
    return [place for place in (folder, ROOT, ROOT / "cmd") if is_module(place / first)]


def exists(text: str, folder: Path) -> bool:
    """Whether a dotted name is a module, a name in one, or a member of a class."""
    first, *rest = text.split(".")
    if first in classes():
        return rest[0] in members(first)
    return any(is_in(place / first, rest) for place in places(text, folder))


def is_in(place: Path, parts: list[str]) -> bool:
    rest = list(parts)
    while rest and is_module(place / rest[0]):
        place /= rest.pop(0)
    tree = trees().get(place / "__init__.py") or trees().get(place.with_suffix(".py"))
    return not rest or (tree is not None and rest[0] in names_of(tree))


def is_of_the_code(text: str, folder: Path) -> bool:
    """Whether a dotted name begins with a class or a module, and is no template of the chart."""
    begins = text.partition(".")[0] in classes() or places(text, folder)
    chart = (ROOT / "deploy/helm/waggle/templates/_helpers.tpl").read_text()
    return "." in text and bool(begins) and f'define "{text}"' not in chart


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the texts that stand alone: docstrings, also of fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


PACKAGES = sorted(path for room in PRODUCT for path in (ROOT / room).rglob("__init__.py"))


def test_a_package_names_its_modules_and_the_classes_of_the_code() -> None:
    """Also a room its neighbours, and a package those around it; dotted names are the next test's."""
    missing = []
    for path in PACKAGES:
        around = {*path.relative_to(ROOT).parts, *(ROOMS if path.parent.parent == ROOT else ())}
        known = around | classes().keys() | set(names_of(trees()[path]))
        missing += [
            f"{path.relative_to(ROOT)}: {text}"
            for text in QUOTED.findall(ast.get_docstring(trees()[path]) or "")
            if "." not in text and text not in known and not is_module(path.parent / text)
        ]
    assert missing == []


def test_dotted_names_in_docstrings_exist() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {text}"
        for path, tree in trees().items()
        for doc in docstrings(tree)
        for text in QUOTED.findall(doc)
        if is_of_the_code(text, path.parent) and not exists(text, path.parent)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_members_of_classes_in_pages_exist(page: Path) -> None:
    names = [
        text for text in QUOTED.findall(page.read_text()) if text.partition(".")[0] in classes()
    ]
    assert [text for text in names if "." in text and not exists(text, ROOT)] == []


def test_the_page_has_every_room_of_cells_and_every_reconciler_of_an_agent() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    rooms = {path.parent.name for path in PACKAGES if path.parent.parent == ROOT / "cells"}
    rooms -= {"options"}  # the options of all of them
    assert [room for room in sorted(rooms) if f"`{room}/`" not in page] == []
    listed = set(re.findall(r"^\| (\d+) \| `([\w-]+)` \|", page, re.MULTILINE))
    assert listed == set(reconcilers_of_agents())


def reconcilers_of_agents() -> Iterator[tuple[str, str]]:
    """Yield order and name of the reconcilers whose targets are processes, not the API server."""
    for path, tree in trees().items():
        if path.relative_to(ROOT).parts[:2] not in [
            ("reconcilers", room) for room in ("apply", "bfd", "kernel")
        ]:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Description":
                values = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                yield values["order"], ast.literal_eval(values["name"])
