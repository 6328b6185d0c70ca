"""One role, one file name, in every dialect; docs/architecture.md has the roles."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from msgspec.structs import fields

from reconcilers import dialect as api
from resources.option_declarations import Options
from waggle.dialects import DIALECTS

ROOT = Path(__file__).parents[3]
DIALECT_NAMES = [entry.name for entry in DIALECTS]
EXTENSIONS = {
    api.Operation: "operate",
    api.Explanation: "explain",
    api.Conversion: "convert",
    api.Admission: "admission",
    api.StoredState: "stored_state",
    api.Rendering: "generated",
    api.WrittenObjects: "node_objects",
    api.ReportedStatuses: "report",
    api.HostNeeds: "host_needs",
    api.ReservedAddresses: "cluster_addresses",
    api.LogLevelObject: "log_level",
    api.ApiPath: "views",
    api.Command: "command",
    api.CompatMetrics: "compat_metrics",
    api.ReportedSessions: "reported_sessions",
    api.ServiceStatuses: "service_statuses",
}
"""The role of each type of extension with functions of its own."""
FUNCTIONS = {"candidates": "candidates", "rows": "convert", "draft": "convert"}
"""The role of a field of an extension, where it differs from the extension's."""
OTHER_NAMES = frozenset(
    {
        *("configuration", "node", "intent", "compile", "compiler"),
        *("source", "sources", "route_source", "addresses", "candidate"),
        *("cluster", "operator", "operation", "plan"),
        *("condition", "status_conditions", "explanation", "facts", "node_values"),
        *("conversion", "converter", "converters", "review", "review_warnings"),
        *("kind", "option", "settings", "flags", "states", "remembered"),
    }
)
"""Other words for the roles, which no file of a dialect has for its name."""


def modules(name: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules of a dialect, each with the name of its role: a package is one role."""
    room = ROOT / "reconcilers" / name
    for path in sorted(room.rglob("*.py")):
        parts = path.relative_to(room).with_suffix("").parts
        dotted = ".".join(("reconcilers", name, *(part for part in parts if part != "__init__")))
        yield parts[0], importlib.import_module(dotted)


def own_classes(module: ModuleType) -> Iterator[type[Any]]:
    for value in vars(module).values():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield value


def role_of(function: object, name: str) -> str | None:
    """Return the file of a dialect's function; None if it is not in the dialect's room."""
    module = function.__module__ if isinstance(function, FunctionType) else ""
    found = re.match(rf"reconcilers\.{name}\.(\w+)", module)
    return found[1] if found else None


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_options_dialects_and_route_sources_are_in_files_of_their_names(name: str) -> None:
    for role, module in modules(name):
        for value in own_classes(module):
            if issubclass(value, Options):
                assert role == "options", value
            if issubclass(value, api.Dialect):
                assert role == "dialect", value
            if hasattr(value, "contributions") and hasattr(value, "affected"):
                assert role == "route_sources", value


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_what_extends_a_program_is_in_the_file_of_its_role(name: str) -> None:
    """The dialect's own file may have what is a few lines."""
    (dialect,) = (entry.load() for entry in DIALECTS if entry.name == name)
    for extension in dialect.extensions:
        for field in fields(extension):
            role = role_of(getattr(extension, field.name), name)
            expected = FUNCTIONS.get(field.name, EXTENSIONS.get(type(extension)))
            assert role in (None, "dialect", expected), (extension, field.name)


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_the_intent_of_a_node_is_compiled_in_one_file(name: str) -> None:
    for path in sorted((ROOT / "reconcilers" / name).rglob("*.py")):
        returned = [
            ast.unparse(node.returns)
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef) and node.returns is not None
        ]
        if any("NodeIntent" in annotation for annotation in returned):
            assert path.stem in ("compile_node", "dialect"), path


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_kinds_are_declared_in_one_file(name: str) -> None:
    for path in sorted((ROOT / "resources" / name).rglob("*.py")):
        calls = [
            node.func
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
        ]
        if any(isinstance(func, ast.Name) and func.id == "Kind" for func in calls):
            assert path.stem == "kinds", path


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_no_file_has_another_word_for_a_role(name: str) -> None:
    assert {role for role, _ in modules(name)} & OTHER_NAMES == set()


def test_the_page_has_every_role() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    roles = {"kinds", "options", "dialect", "compile_node", "route_sources", "conditions"}
    roles |= {"node_facts", *EXTENSIONS.values(), *FUNCTIONS.values()}
    assert [role for role in sorted(roles) if f"| `{role}.py` |" not in page] == []
