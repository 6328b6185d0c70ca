"""One role, one file name, in every dialect; docs/architecture.md has the roles."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections import Counter
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
    api.Diagnosis: "diagnosis",
    api.ReservedAddresses: "cluster_addresses",
    api.LogLevelObject: "log_level",
    api.ApiPath: "views",
    api.Command: "command",
    api.CompatMetrics: "compat_metrics",
    api.ReportedSessions: "reported_sessions",
    api.ReportedAdvertisements: "reported_sessions",
    api.ServiceStatuses: "service_statuses",
}
"""The role of each type of extension with functions of its own."""
FUNCTIONS = {"candidates": "candidates", "rows": "convert", "draft": "convert"}
"""The role of a field of an extension, where it differs from the extension's."""
ROLES = {"options", "dialect", "compile_node", "route_sets", "route_sources"} | {
    *("objects", "selection", "in_effect", "translation", "passwords", "services"),
    *("conditions", "node_facts"),
    *EXTENSIONS.values(),
    *FUNCTIONS.values(),
}
"""The files, or packages, that every dialect has by these names, if it has them."""
OWN_FILES = {
    "cilium": "bfd default_router_id exposure instances interfaces node_configs "
    "node_status peer_ends pod_cidrs pod_ip_pools router_ids sessions v1/annotations v1/names",
    "frrk8s": "blocked claim_table claims configuration_text exports field_values "
    "isolation/isolated_objects isolation/joint_relations isolation/order isolation/references "
    "kernel_routes last_good merge/merger merge/union one_object/neighbors one_object/routers "
    "one_object/session prefix_rules raw_config raw_redistribution "
    "redistribute_annotation router_rows unit_parts",
    "metallb": "bit_sets conflicts/advertisements conflicts/all_conflicts conflicts/echo "
    "conflicts/shared_values conflicts/valid_objects feed findings "
    "pool_selection preferences_beside_frrk8s relations",
    "ovnk": "advertiser_annotations attached_networks changed_objects egress_ips errors evpn "
    "generated_text managed_bgp node_next_hops node_prefixes other_writer "
    "parsed_annotation results stored_objects vteps",
}
"""The other files of dialects that have any: none of them is a role that several dialects have."""
OTHER_NAMES = frozenset(
    {
        *("configuration", "node", "intent", "compile", "compiler"),
        *("source", "sources", "route_source", "addresses", "candidate"),
        *("cluster", "operator", "operation", "plan"),
        *("condition", "status_conditions", "explanation", "facts", "node_values"),
        *("conversion", "converter", "converters", "review", "review_warnings"),
        *("kind", "option", "settings", "flags", "states", "remembered"),
        *("selected", "selections", "effective", "chosen", "choice", "taken", "accepted"),
        *(
            "translate",
            "translated",
            "translator",
            "feeding",
            "fed",
            "password",
            "secrets",
            "service",
        ),
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
    if not isinstance(function, FunctionType) or _only_imports(function):
        return None
    found = re.match(rf"reconcilers\.{name}\.(\w+)", function.__module__)
    return found[1] if found else None


def _only_imports(function: FunctionType) -> bool:
    """Whether a function imports the file of its role when it is called, or is a mere expression."""
    if function.__name__ == "<lambda>":
        return True
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    body = tree.body if isinstance(tree, ast.FunctionDef) else []
    return [type(step) for step in body] == [ast.ImportFrom, ast.Return]


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


def functions(name: str) -> Iterator[tuple[Path, str, ast.FunctionDef]]:
    """Yield the functions of a dialect with their file, and the name of its role."""
    room = ROOT / "reconcilers" / name
    for path in sorted(room.rglob("*.py")):
        names = path.relative_to(room).with_suffix("").parts
        role = next((part for part in names if part in ROLES), names[-1])
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield path, role, node


def takes(function: ast.FunctionDef, name: str) -> bool:
    """True if an argument's type has this name in it."""
    arguments = function.args
    return any(
        argument.annotation is not None
        and re.search(rf"\b{name}\b", ast.unparse(argument.annotation))
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )


@pytest.mark.parametrize(
    ("type_", "roles"),
    [
        ("Secret", {"passwords", "compile_node"}),
        ("EndpointSlice", {"services", "route_sources", "service_statuses"}),
    ],
)
@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_secrets_and_endpoints_are_read_in_the_files_of_their_roles(
    name: str, type_: str, roles: set[str]
) -> None:
    readers = {
        (path.name, role)
        for path, role, node in functions(name)
        if takes(node, type_) and node.name != "__init__"
    }
    assert {file for file, role in readers if role not in roles} == set()


@pytest.mark.parametrize("name", [entry.name for entry in DIALECTS if entry.feeds])
def test_objects_of_the_fed_api_are_made_in_the_translation(name: str) -> None:
    """`compile_node` may read what the operator has written of them."""
    makers = {
        role
        for _, role, node in functions(name)
        if node.returns is not None and "FRRConfiguration" in ast.unparse(node.returns)
    }
    assert "translation" in makers
    assert makers <= {"translation", "compile_node"}


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_rules_of_route_sets_are_in_the_file_of_route_sets(name: str) -> None:
    for role, module in modules(name):
        for value in own_classes(module):
            if value.__name__.endswith(("Rules", "RouteSet", "RouteSets")):
                assert role == "route_sets", value


def test_candidates_are_named_by_what_selects_them() -> None:
    """`Candidate` is what all of them have in common; no two dialects have one of a name."""
    names = [
        value.__name__
        for dialect in DIALECT_NAMES
        for role, module in modules(dialect)
        for value in own_classes(module)
        if role == "candidates" or value.__name__.endswith("Candidate")
    ]
    assert names
    assert len({"Candidate", *names}) == 1 + len(names)


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_what_extends_a_program_is_in_the_file_of_its_role(name: str) -> None:
    (dialect,) = (entry.load() for entry in DIALECTS if entry.name == name)
    for extension in dialect.extensions:
        for field in fields(extension):
            role = role_of(getattr(extension, field.name), name)
            of_type = EXTENSIONS.get(type(extension), "dialect")
            assert role in (None, FUNCTIONS.get(field.name, of_type)), (extension, field.name)


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_the_intent_of_a_node_is_compiled_in_one_file(name: str) -> None:
    """The dialect's own `compile` calls it, and does nothing else."""
    for path in sorted((ROOT / "reconcilers" / name).rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef) or function.returns is None:
                continue
            if "NodeIntent" not in ast.unparse(function.returns):
                continue
            calls = function.name == "compile" and path.stem == "dialect"
            assert path.stem == "compile_node" or (calls and len(function.body) == 2), path


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
def test_a_file_has_a_role_or_is_listed_as_a_part_of_one_dialect(name: str) -> None:
    room = ROOT / "reconcilers" / name
    own = set()
    for path in sorted(room.rglob("*.py")):
        parts = path.relative_to(room).with_suffix("").parts
        if parts[0] not in ROLES and parts[-1] not in (*ROLES, "__init__"):
            own.add("/".join(parts))
    assert own == set(OWN_FILES.get(name, "").split())


@pytest.mark.parametrize("name", DIALECT_NAMES)
def test_no_file_has_another_word_for_a_role(name: str) -> None:
    words = {word for path in OWN_FILES.get(name, "").split() for word in path.split("/")}
    assert words & OTHER_NAMES == set()


def test_no_name_is_of_two_files_of_dialects_and_none_is_a_role() -> None:
    """A name that two dialects have is a role, or is two ideas, which have two names."""
    names = Counter(
        path.rpartition("/")[2] for listed in OWN_FILES.values() for path in listed.split()
    )
    assert [name for name, files in names.items() if files > 1 or name in ROLES] == []


def test_the_page_has_every_role() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    assert [role for role in sorted(ROLES) if f"| `{role}.py` |" not in page] == []
