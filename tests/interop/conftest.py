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
def unavailable_routers(no_namespaces: str | None) -> dict[str, str]:
    """Why a router cannot be run here, for each kind that cannot."""
    reasons = {kind: no_namespaces or driver.missing() for kind, driver in KINDS.items()}
    return {kind: reason for kind, reason in reasons.items() if reason is not None}


@pytest.fixture(scope="session")
def need_router(unavailable_routers: dict[str, str]) -> NeedRouter:
    """Skip the test, with the reason, unless the router and namespaces are there."""

    def need(kind: str) -> None:
        if kind in unavailable_routers:
            pytest.skip(unavailable_routers[kind])

    return need


@pytest.fixture(scope="session")
def versions(unavailable_routers: dict[str, str]) -> dict[str, str]:
    """Names and versions of the routers that can be run here."""
    return {
        kind: driver.version() for kind, driver in KINDS.items() if kind not in unavailable_routers
    }


@pytest.fixture
def recorded_cell(
    request: pytest.FixtureRequest,
    kind: str,
    need_router: NeedRouter,
    versions: dict[str, str],
    record_property: Callable[[str, object], None],
) -> None:
    """Record the cell of a test, and the version of the router, for the page."""
    need_router(kind)
    marker = request.node.get_closest_marker("cell")
    record_property("cell", [marker.args[0], kind, versions[kind]])
