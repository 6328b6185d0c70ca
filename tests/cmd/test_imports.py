"""What the programs import: ``--help`` options and names alone, an agent what is on."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from typing import Any

import pytest

from cells import options
from cells.agent import agent_cells
from cells.hive import Cell
from cells.operator.cells import operator_cells
from reconcilers.dialect_entry import DialectEntry
from tests.dialects.dialect_programs import TEST_DIALECTS
from waggle.dialects import DIALECTS

ROOMS = ("cells", "reconcilers", "resources", "speaker", "statedb")
OF_FLAGS = {
    *(f"cells.options.{module.name}" for module in pkgutil.iter_modules(options.__path__)),
    "cells.agent",
    "cells.arguments",
    "cells.declarations",
    "cells.dialects.cell",
    "cells.hangup",
    "cells.hive.cell",
    "cells.hive.errors",
    "cells.hive.health",
    "cells.hive.option_loading",
    "cells.hive.unknown_name",
    "cells.operator.cells",
    "cells.options",
    "cells.safe_text",
    "cells.version",
    "cells.lean_imports",
    "reconcilers.dialect_entry",
    "reconcilers.import_options",
    "reconcilers.intent.options",
    "reconcilers.bfd",
    "reconcilers.bfd.options",
    "reconcilers.kernel.options",
    "resources.option_declarations",
    "resources.option_spelling",
    *(f"cells.dialects.{entry.name}" for entry in DIALECTS),
    *(f"reconcilers.{entry.name}.options" for entry in DIALECTS),
}
"""The own modules that declare, parse and check options."""
SLOW = {
    "aiohttp",
    "asyncinotify",
    "asyncio",
    "dependency_injector",
    "email",
    "kubernetes_asyncio",
    "opentelemetry",
    "prometheus_client",
    "pyroute2",
    "reactivex",
    "rich",
    "ssl",
    "structlog",
    "uvloop",
    "yaml",
}
OF_OPERATOR_CELLS = [
    f"cells.operator.{name}"
    for name in ("cell", "election", "local", "rivals", "source", "webhook")
]
MODULES = "import sys; print(*sorted(sys.modules), file=sys.stderr)"


def imported(code: str) -> set[str]:
    """Return the modules that are imported once a new interpreter has run the code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{MODULES}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.split())


def packages(modules: set[str]) -> set[str]:
    """Return the modules with the packages that they are in."""
    return {".".join(name.split(".")[:end]) for name in modules for end in range(1, 9)}


@pytest.mark.program
@pytest.mark.parametrize("program", ["waggle_agent", "waggle_operator"])
def test_help_imports_the_declarations_of_options_and_no_cell(program: str) -> None:
    found = imported(
        f"from {program}.__main__ import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass"
    )  # fmt: skip
    own = {name for name in found if name.split(".")[0] in ROOMS}
    assert own - packages(OF_FLAGS) == set()
    assert {name.split(".")[0] for name in found} & SLOW == set()


@pytest.mark.program
def test_the_help_of_waggle_imports_no_dialect() -> None:
    found = imported(
        "from waggle.__main__ import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    assert below(found, "reconcilers.dialect", *(f"resources.{e.name}" for e in DIALECTS)) == []
    assert below(found, *(f"reconcilers.{entry.name}.dialect" for entry in DIALECTS)) == []


AGENT = """
import json, os, sys
from cells.hive import load
from cells.hive.hive import Hive
from waggle_agent.__main__ import CELLS
from waggle_agent import program
for number, (flags, off, also) in enumerate(json.load(sys.stdin)):
    if os.fork() == 0:
        switches = {"enable_cell": [], "disable_cell": off}
        Hive(CELLS, load(CELLS, flags={**flags, **switches}))
        for name in also:
            __import__(name)
        with open(str(number), "w") as file:
            json.dump(sorted(sys.modules), file)
        os._exit(0)
    assert os.wait()[1] == 0
"""
FROM_CLUSTER = {"--kubeconfig": "in-cluster"}
FROM_MANIFESTS = {"--manifests": ["."]}
SERVED = ("cells.serve.handlers", "cells.observability.metrics")
Question = tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]
"""Flags of an agent, cells that are off, and what is imported when it runs."""
QUESTIONS: dict[str, Question] = {
    "no flag": ({}, (), ()),
    "manifests": (FROM_MANIFESTS, (), ()),
    "cluster": (FROM_CLUSTER, (), ()),
    "cluster, with its servers": (FROM_CLUSTER, (), SERVED),
    **{f"cluster, without {entry.name}": (FROM_CLUSTER, (entry.name,), ()) for entry in DIALECTS},
}
of_agents = pytest.mark.xdist_group("imports-of-agents")
"""Of the tests of `agents`."""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What an agent imports until it starts, by question; each is answered by a fork."""
    folder = tmp_path_factory.mktemp("imports")
    subprocess.run(
        [sys.executable, "-c", AGENT],
        input=json.dumps([*QUESTIONS.values()]),
        text=True,
        timeout=60,
        check=True,
        cwd=folder,
    )
    return {
        question: set(json.loads((folder / str(number)).read_text()))
        for number, question in enumerate(QUESTIONS)
    }


def below(found: set[str], *names: str) -> list[str]:
    """Return the imported modules of these names, and those below them."""
    return sorted(f for f in found if any(f == n or f.startswith(f"{n}.") for n in names))


@pytest.mark.program
@of_agents
def test_an_agent_imports_no_cell_that_is_off(agents: dict[str, set[str]]) -> None:
    found = agents["no flag"]
    off = [
        *(
            "cells.observability.http",
            "cells.observability.telemetry",
            "cells.sources.snapshot",
            "cells.report",
        ),
        *OF_OPERATOR_CELLS,
        *("cells.sources.manifests", "resources.manifests", "asyncinotify"),
        *(
            "cells.sources.api_server",
            "cells.sources.kubernetes",
            "resources.kubernetes",
            "kubernetes_asyncio",
        ),
        *("reconcilers.operator", "reconcilers.report.statuses"),
        *("opentelemetry.sdk", "opentelemetry.exporter", "pyroute2", "resources.host.netlink"),
    ]
    assert below(found, *off) == []


@pytest.mark.program
@of_agents
def test_the_server_of_the_own_api_is_imported_when_the_agent_has_started(
    agents: dict[str, set[str]],
) -> None:
    found = agents["manifests"]
    assert "cells.serve.server" in found
    assert below(found, "aiohttp", "cells.serve.handlers", "reconcilers.plan") == []


@pytest.mark.program
@of_agents
def test_an_agent_with_its_servers_reads_its_version_without_the_library_of_metadata(
    agents: dict[str, set[str]],
) -> None:
    """Which imports archives, tables and mail: 0.8 MB of each process."""
    found = agents["cluster, with its servers"]
    assert {*SERVED} <= found
    assert below(found, "importlib.metadata", "zipfile", "csv") == []


@pytest.mark.program
@of_agents
def test_an_agent_of_manifests_imports_no_client_of_an_api_server(
    agents: dict[str, set[str]],
) -> None:
    found = agents["manifests"]
    assert "resources.manifests.source" in found
    assert below(found, "resources.kubernetes", "kubernetes_asyncio", "cells.report") == []


@pytest.mark.program
@of_agents
def test_an_agent_of_an_api_server_imports_no_manifests_and_no_operator(
    agents: dict[str, set[str]],
) -> None:
    found = agents["cluster"]
    assert "resources.kubernetes.source" in found
    assert below(found, "resources.manifests", "asyncinotify", *OF_OPERATOR_CELLS) == []
    assert below(found, "reconcilers.operator") == []
    # The parts of the operator and of `waggle explain` in a dialect that is on.
    assert below(found, "reconcilers.cilium.operate", "reconcilers.cilium.explain") == []


@pytest.mark.program
@of_agents
@pytest.mark.parametrize("entry", DIALECTS, ids=lambda entry: entry.name)
def test_of_a_dialect_that_is_off_the_options_are_imported(
    entry: DialectEntry, agents: dict[str, set[str]]
) -> None:
    found = agents[f"cluster, without {entry.name}"]
    own = below(found, f"reconcilers.{entry.name}", f"resources.{entry.name}")
    assert own == [f"reconcilers.{entry.name}", f"reconcilers.{entry.name}.options"]


@pytest.mark.program
def test_an_agent_imports_structlog_without_rich() -> None:
    found = imported("from waggle_agent.__main__ import main; main(['cells']); import rich.text")
    assert "structlog.dev" in found
    # Nothing but what was imported here.
    assert below(found, "rich.traceback", "pygments") == []


@pytest.mark.program
def test_a_router_imports_neither_the_source_of_manifests_nor_a_dialect() -> None:
    """Its memory beside a full table is that of the speaker (docs/performance.md)."""
    found = imported("import waggle.commands.router.program, waggle.router_config.load")
    assert "resources.manifests.yamlfile" in found
    slow = SLOW - {"asyncio", "email", "http", "msgspec", "ssl", "urllib", "uvloop", "yaml"}
    assert {name.split(".")[0] for name in found} & slow == set()
    assert below(found, *(f"reconcilers.{entry.name}" for entry in DIALECTS)) == []
    assert below(found, "resources.manifests") == [
        "resources.manifests",
        "resources.manifests.yamlfile",
    ]


@pytest.mark.parametrize(
    "cell",
    [*agent_cells(*DIALECTS, *TEST_DIALECTS), *operator_cells(*DIALECTS, *TEST_DIALECTS)],
    ids=lambda cell: cell.name,
)
def test_every_wiring_can_be_imported_and_is_that_of_its_entry(cell: Cell) -> None:
    wiring = cell.wired()
    assert wiring.provides or wiring.private or wiring.invokes or wiring.contributes
    assert cell.wired() is wiring
