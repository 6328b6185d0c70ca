"""What the tests against real routers share: asking for a router that may not be installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pytest

from tests.support.routers import KINDS


class NeedRouter(Protocol):
    """Skips the test unless a router of that kind can be run here."""

    def __call__(self, kind: str) -> None: ...


@pytest.fixture(scope="session")
def need_router(no_namespaces: str | None) -> NeedRouter:
    """Skip the test, with the reason, unless the router and namespaces are there."""
    missing = {kind: router.missing() for kind, router in KINDS.items()}

    def need(kind: str) -> None:
        reason = no_namespaces or missing[kind]
        if reason is not None:
            pytest.skip(reason)

    return need


@pytest.fixture(scope="session")
def versions() -> dict[str, str]:
    """Names and versions of the routers that are installed."""
    return {kind: driver.version() for kind, driver in KINDS.items() if driver.missing() is None}


@pytest.fixture
def told(
    request: pytest.FixtureRequest,
    kind: str,
    need_router: NeedRouter,
    versions: dict[str, str],
    record_property: Callable[[str, object], None],
) -> None:
    """Tell the page which cell this is, and of which version."""
    need_router(kind)
    marker = request.node.get_closest_marker("cell")
    record_property("cell", [marker.args[0], kind, versions[kind]])
