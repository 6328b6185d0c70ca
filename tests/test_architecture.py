"""Rules beyond the import contracts: the place of the SDK, docstrings of modules, the packaging."""

from __future__ import annotations

import ast
import functools
import itertools
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cells import declarations
from cells.hive import Cell

ROOT = Path(__file__).parent.parent
ROOMS = ("cells", "reconcilers", "resources", "speaker", "statedb", "cmd")
MAX_LINES = 450
"""Every module has fewer."""
BEFORE_CODE = (tokenize.ENCODING, tokenize.COMMENT, tokenize.NL)


def _modules(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        yield from (ROOT / room).rglob("*.py")


@functools.cache
def _imports(path: Path) -> frozenset[str]:
    """Return the full names of all modules that a file imports, and of what it takes from them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


@pytest.mark.parametrize(
    ("room", "foreign"),
    [
        *(
            (room, ("opentelemetry.sdk", "dependency_injector", "cells"))
            for room in ("speaker", "statedb", "resources", "reconcilers")
        ),
        ("cmd", ("opentelemetry.sdk",)),
    ],
)
def test_only_cells_know_the_opentelemetry_sdk_and_dependency_injection(
    room: str, foreign: tuple[str, ...]
) -> None:
    files = list(_modules(room))
    assert files
    assert [p for p in files if any(name.startswith(foreign) for name in _imports(p))] == []


@pytest.mark.parametrize("part", ["fsm.py", "engine", "peer", "rib", "message", "attribute"])
def test_the_speakers_core_does_no_io(part: str) -> None:
    """Sockets, clocks, chance and traces are the shell's (`speaker.server`)."""
    path = ROOT / "speaker" / part
    files = [path] if path.is_file() else list(path.rglob("*.py"))
    assert files
    banned = {"asyncio", "socket", "time", "opentelemetry", "opentelemetry.trace"}
    assert {(p.name, name) for p in files for name in _imports(p) if name in banned} == set()


SHELL_OF_BFD = {"echo_socket", "shell", "source_filter", "state_file", "transport"}


def test_the_core_of_bfd_does_no_io() -> None:
    """Its packets, its time and its chance come from outside."""
    core = [path for path in _modules("speaker/bfd") if path.stem not in SHELL_OF_BFD]
    assert {"engine", "packet", "schedule", "session"} <= {path.stem for path in core}
    banned = {"asyncio", "mmap", "os", "random", "secrets", "select", "socket", "time"}
    assert {(p.name, name) for p in core for name in _imports(p) if name in banned} == set()


def _is_of_bfd(name: str) -> bool:
    return name == "speaker.bfd" or name.startswith("speaker.bfd.")


def test_bfd_and_the_rest_of_the_speaker_import_nothing_of_each_other() -> None:
    for path in _modules("speaker"):
        of_speaker = {name for name in _imports(path) if name.split(".")[0] == "speaker"}
        of_bfd = {name for name in of_speaker if _is_of_bfd(name)}
        allowed = of_bfd if path.is_relative_to(ROOT / "speaker/bfd") else of_speaker - of_bfd
        assert of_speaker == allowed, path


def test_the_contracts_of_bfd_have_every_other_room_of_the_speaker() -> None:
    """The contracts hold what is imported by way of other modules, too."""
    rooms = {
        f"speaker.{path.stem}"
        for path in (ROOT / "speaker").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"speaker.__init__", "speaker.bfd"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    forbidden = [
        (set(contract["source_modules"]), set(contract["forbidden_modules"]))
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "forbidden"
    ]
    assert ({"speaker.bfd"}, rooms) in forbidden
    assert (rooms, {"speaker.bfd"}) in forbidden


def _says_what_it_is_for(path: Path) -> bool:
    """Whether a docstring comes first; the rest of the file is not read, as that takes time."""
    with path.open("rb") as file:
        tokens = tokenize.tokenize(file.readline)
        first = next(token for token in tokens if token.type not in BEFORE_CODE)
    return first.type == tokenize.STRING and bool(ast.literal_eval(first.string))


def test_every_module_says_what_it_is_for() -> None:
    assert [p for p in _modules(*ROOMS, "tests", "bench") if not _says_what_it_is_for(p)] == []


def test_no_file_of_the_product_is_too_long_to_read_at_once() -> None:
    """A longer one has a second thought, which gets a module and a name of its own."""
    lines = {path: path.read_bytes().count(b"\n") for path in _modules(*ROOMS)}
    assert lines
    long = [
        f"{path.relative_to(ROOT)}: {count} lines"
        for path, count in sorted(lines.items())
        if count >= MAX_LINES
    ]
    assert long == []


def test_the_name_of_a_module_fits_no_other_room() -> None:
    """`values`, `rules` and the like name the contents of any module."""
    anything = {"common", "helpers", "misc", "rules", "types", "util", "utils", "values"}
    assert [path for path in _modules(*ROOMS) if path.stem in anything] == []


def test_helpers_of_tests_have_one_name_for_one_role() -> None:
    """`build` makes a room's values, `objects` its objects; two agents or clusters differ by name."""
    roles = {"bad_objects", "build", "cases", "dialect", "kinds", "objects"}
    shared = {"__init__", "__main__", "conftest", *roles}
    helpers = [path.stem for path in _modules("tests") if not path.stem.startswith("test_")]
    assert {name for name in helpers if helpers.count(name) > 1} <= shared


def test_the_standard_librarys_cmd_stays_importable() -> None:
    assert not (ROOT / "cmd" / "__init__.py").exists()
    done = subprocess.run(
        [sys.executable, "-c", "import cmd, pdb; print(cmd.Cmd.__name__)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "Cmd"


def test_lock_files_carry_hashes_and_no_index() -> None:
    paths = sorted(ROOT.glob("requirements*.lock"))
    assert len(paths) == 3
    for path in paths:
        text = path.read_text()
        assert "--hash=sha256:" in text
        assert "http" not in "".join(line for line in text.splitlines() if line.startswith("-"))


FEEDERS: Mapping[str, frozenset[str]] = {"frrk8s": frozenset({"metallb", "ovnk"})}
"""The dialects that may import another dialect, since they generate its objects."""
LISTS = {"waggle.dialects"}
"""The module with the dialects of the programs."""


def test_each_dialect_has_an_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = {
        frozenset(contract["protected_modules"]): set(contract["allowed_importers"])
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "protected"
    }
    names = [path.parent.name for path in (ROOT / "reconcilers").glob("*/dialect.py")]
    assert names
    assert len(contracts) == len(names)
    for name in names:
        own = {f"resources.{name}", f"reconcilers.{name}", f"cells.dialects.{name}"}
        feeders = {
            f"{room}.{feeder}"
            for feeder in FEEDERS.get(name, ())
            for room in ("resources", "reconcilers")
        }
        found = contracts[frozenset(own)]
        assert own | LISTS <= found <= own | LISTS | feeders, name


LAYERS = "The rooms of cells, each above the rooms that it imports"
OTHER_NAMES = {
    "cells.serve.cell": "api",
    "cells.operator.in_process": "operator",
}
"""The modules of cells whose names are not the cell's or its room's, with the names of the cells."""


def _rooms_of_cells() -> list[set[str]]:
    """Return the rooms of each line of the page's table of rooms."""
    page = (ROOT / "docs/architecture.md").read_text()
    _, _, table = page.partition("| room of `cells/` | wires |\n| --- | --- |\n")
    rows = itertools.takewhile(lambda line: line.startswith("|"), table.splitlines())
    return [set(re.findall(r"`(\w+)/`", row.split("|")[1])) for row in rows]


def test_the_rooms_of_cells_are_in_the_page_and_in_the_contract() -> None:
    folders = {path.parent.name for path in (ROOT / "cells").glob("*/__init__.py")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["name"] == LAYERS)
    of_contract = [set(layer.split(" | ")) & folders for layer in layers]
    assert _rooms_of_cells() == [layer for layer in of_contract if layer]
    assert set[str]().union(*of_contract) == folders


def test_the_modules_of_cells_without_a_room_are_on_the_page_and_are_no_cells() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    (row,) = re.findall(r"^\| `cells/` \| (.+) \|$", page, re.MULTILINE)
    modules = {path.name for path in (ROOT / "cells").glob("*.py")} - {"__init__.py"}
    assert modules == set(re.findall(r"`(\w+\.py)`", row.partition("Without a room")[2]))


def test_a_cell_has_the_name_of_its_module_or_its_room() -> None:
    for cell in (value for value in vars(declarations).values() if isinstance(value, Cell)):
        assert isinstance(cell.wiring, str)
        *rooms, module = cell.wiring.split(".")
        assert rooms != ["cells"], f"{cell.name} is in no room"
        name = rooms[-1] if module == "cell" else module.replace("_", "-")
        assert OTHER_NAMES.get(cell.wiring, name) == cell.name


@pytest.mark.parametrize("room", ["cells", "cmd", "statedb"])
def test_values_are_frozen(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in _modules(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and _is_value(node) and not _is_frozen(node)
    ]
    assert found == []


def _is_value(node: ast.ClassDef) -> bool:
    """True for a struct of msgspec, or a class that declares how it behaves as one."""
    return "Struct" in {ast.unparse(base).rpartition(".")[2] for base in node.bases} or any(
        keyword.arg == "frozen" for keyword in node.keywords
    )


def _is_frozen(node: ast.ClassDef) -> bool:
    return any(
        keyword.arg == "frozen" and ast.unparse(keyword.value) == "True"
        for keyword in node.keywords
    )


CLOCKS = {"monotonic", "perf_counter", "time"}
ON_BUSY_MACHINES = ("bench", "cases", "cells", "cmd", "deploy", "scenarios")
"""Rooms of tests."""


def _reads_a_clock(node: ast.AST) -> bool:
    """Whether an expression is ``time.monotonic()``, or of another clock of the machine."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
        and node.func.attr in CLOCKS
    )


def test_no_test_fails_for_the_time_that_it_took() -> None:
    """A busy machine has no time for a process at any moment: see `tests.support.quickest`."""
    files = [*_modules(*(f"tests/{room}" for room in ON_BUSY_MACHINES)), *ROOT.glob("tests/*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files
        for statement in ast.walk(ast.parse(path.read_text()))
        if isinstance(statement, ast.Assert)
        for node in ast.walk(statement)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        if _reads_a_clock(node.left)
    ]
    assert found == []
