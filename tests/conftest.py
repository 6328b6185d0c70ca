"""What all tests share: skipping what this machine cannot run, and saying so in one line.

Fixtures that only some directories need live in their own conftest. Never skips silently.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import re
import ssl
from asyncio.selector_events import BaseSelectorEventLoop
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer

from cells.api import client
from cells.hive import capabilities
from tests.support import builds, examples, gobgp, helm, jaeger, netns, workers
from tests.support.background_loop import open_connections
from tests.support.interop_page import InteropPage
from tests.support.kubernetes import assets
from tests.support.kubernetes.server import KubeApiServer, api_server
from tests.support.netns import Link, linked_namespaces

examples.register_profiles()
COUNTED = {
    "tests on VRF devices": {"vrf"},
    "tests with Jaeger": {"jaeger"},
    "tests with the BFD of GoBGP": {"gobgp"},
    "tests against real routers": {"interop", "netns"},
    "tests on a real API server": {"apiserver"},
    "tests of the chart": {"helm"},
}
"""Skipped tests are counted at the end: the markers of each group. A test is of the first one."""
PROGRAMS: Mapping[str, Callable[[], object]] = {
    "apiserver": assets.find,
    "gobgp": gobgp.find,
    "helm": helm.find,
    "jaeger": jaeger.find,
}
"""The programs that may be built while tests run, by the marker of the tests that need them."""
NUMBERS: Final = itertools.count()
"""Of the directories of tests."""


def pytest_configure(config: pytest.Config) -> None:
    """Write the interop matrix after a run that has tried all of it."""
    os.environ["PAGER"] = "cat"  # a pager of a terminal waits for a person
    # pytest-xdist: the process that hears of all tests, not a process that runs some of them.
    worker = getattr(config, "workerinput", None)
    if worker is None:
        config.pluginmanager.register(InteropPage())
    elif getattr(config.option, "loadgroup", False):
        workers.give_way(worker["workerid"], worker["workercount"])


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have each worker import a share of the test files first: each is compiled by one of them."""
    config, root = session.config, session.config.rootpath
    worker = getattr(config, "workerinput", None)
    if config.getoption("dist", "no") == "no":
        # Until `pytest_collection_finish`: hardly anything of it is garbage.
        gc.disable()
    if worker is None or config.args != config.getini("testpaths"):
        return
    files = sorted(root.glob("tests/**/test_*.py"))
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        # The collection reports what a module raises.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(optionalhook=True)  # there is none without pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of ``-n auto``: three more than processors, as tests of programs wait."""
    return len(os.sched_getaffinity(0)) + 3


@pytest.fixture(scope="session", autouse=True)
def _no_authorities() -> Iterator[None]:
    """Trust none of this machine's authorities: each client would take 70 ms to read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _patient_clients() -> Iterator[None]:
    """Wait longer for an agent than a person does: a busy machine keeps it from running for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "TIMEOUT", 6 * client.TIMEOUT)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_open_connections() -> Iterator[None]:
    """Fail the test whose loop is closed with an open connection: the collector fails another test."""
    close = BaseSelectorEventLoop.close

    def closing(loop: BaseSelectorEventLoop) -> None:
        left = [] if loop.is_closed() else open_connections(loop)
        close(loop)
        assert not left, f"connections of a loop that is closed are open: {left}"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseSelectorEventLoop, "close", closing)
        yield


@pytest.fixture(scope="module", autouse=True)
def _no_garbage() -> Iterator[None]:
    """Collect what the tests of a module left: an open socket fails them, and no other module's.

    What stays is not looked at again: each collection is of the objects of one module.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_net_admin() -> Iterator[None]:
    """Start no process that writes routes, unless a test sets --fib: they are this machine's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capabilities, "children_have", lambda _: False)
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for one test; pytest's own numbers it by a look at every earlier one."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}{next(NUMBERS)}", numbered=False)


@pytest.fixture(scope="session")
def no_namespaces() -> str | None:
    """Why there can be no network namespaces, or None."""
    return netns.unavailable()


@pytest.fixture
def link(no_namespaces: str | None) -> Iterator[Link]:
    """Two namespaces joined by a cable, for one test."""
    if no_namespaces is not None:
        pytest.skip(no_namespaces)
    with linked_namespaces() as made:
        yield made


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApiServer]:
    """A real API server without any objects but its own; tests share it, and name theirs apart."""
    found = assets.find()
    if isinstance(found, str):
        pytest.skip(found)
    with api_server(found, tmp_path_factory.mktemp("apiserver")) as server:
        yield server


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what stays until the end: modules, tests, parameters.

    With Python's own threshold, 700 objects, it takes a twelfth of the time of all tests.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have tests late whose programs may be built meanwhile; what waits before what computes."""
    if hasattr(config, "workerinput"):
        items[:] = workers.in_order(items)
    else:
        items.sort(key=workers.late)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> workers.SideBySide | None:
    """Return the schedule of ``make test``."""
    return workers.SideBySide(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait for a program that is being built, before the time limit of the test begins."""
    for marker, find in PROGRAMS.items():
        if item.get_closest_marker(marker) is not None:
            builds.wait(lambda find=find: not isinstance(find(), str), builds.cache())  # type: ignore[misc]
    return (yield)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let one worker run all tests on the API server, so that there is one (pytest-xdist)."""
    if item.get_closest_marker("apiserver") is not None:
        item.add_marker(pytest.mark.xdist_group("apiserver"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each group with the skipped tests and the reasons."""
    skipped: dict[str, Counter[str]] = {group: Counter() for group in COUNTED}
    for report in terminalreporter.stats.get("skipped", []):
        groups = (group for group, markers in COUNTED.items() if markers & set(report.keywords))
        group = next(groups, None)
        if group is not None and isinstance(report.longrepr, tuple):
            skipped[group][report.longrepr[2].removeprefix("Skipped: ")] += 1
    for group, reasons in skipped.items():
        if reasons:
            parts = [f"{reason} ({count} tests)" for reason, count in sorted(reasons.items())]
            terminalreporter.write_line(f"skipped {group}: {'; '.join(parts)}")
