"""The groups of tests: tests that share a server or a build are run by one worker of pytest-xdist."""

from __future__ import annotations

import pytest


def test_workers_see_the_groups_of_all_tests(request: pytest.FixtureRequest) -> None:
    """A worker adds the group to the id; otherwise each worker starts its own servers, unnoticed."""
    if request.config.getoption("loadgroup", default=False):
        grouped = [item for item in request.session.items if item.get_closest_marker("xdist_group")]
        assert [item.nodeid for item in grouped if "@" not in item.nodeid] == []
