"""The leader's check of the versions of other programs: health, and one log line for each."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.hive import Group, HealthTree
from cells.operator import tested_versions
from cells.operator.tested_versions import POLL_INTERVAL_SECONDS, CompanionCheck
from reconcilers.dialect import Companion, Dialect
from reconcilers.operator.tested_versions import Untested

ONE = Untested("metallb", "controller is 9.0; tested are versions 0.13 to 0.15")
TWO = Untested("metallb", "the API server serves x without version v1")


def dialect(name: str, *companions: object) -> Any:  # noqa: ANN401
    return SimpleNamespace(name=name, each=lambda of: companions if of is Companion else ())


def test_an_untested_version_is_logged_once_and_degrades_the_health(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, untested = HealthTree(), [ONE]
    given: list[object] = []

    async def found(writer: object, dialects: list[Any]) -> list[Untested]:
        given.append((writer, [of.name for of in dialects]))
        return list(untested)

    monkeypatch.setattr(tested_versions, "untested_versions", found)
    dialects = Group[Dialect]((dialect("metallb", object()), dialect("antrea")))
    check = CompanionCheck(dialects, tree.scope("operator"))
    assert check.needed
    assert not CompanionCheck(Group[Dialect](), tree.scope("operator")).needed

    def run() -> list[tuple[str, str, str]]:
        with capture_logs() as logs:
            assert asyncio.run(check.run(cast("Any", "w"))) == POLL_INTERVAL_SECONDS
        return [(line["event_name"], line["dialect"], line["reason"]) for line in logs]

    def health() -> tuple[str, str]:
        (status,) = [s for s in tree.report() if s.message]
        assert status.path[-1] == "companions"
        return str(status.level), status.message

    assert run() == [("operator.untested_version", "metallb", ONE.message)]
    assert given == [("w", ["metallb"])]
    assert health() == ("degraded", ONE.message)
    untested.append(TWO)
    assert run() == [("operator.untested_version", "metallb", TWO.message)]
    assert health() == ("degraded", f"{ONE.message}. {TWO.message}")
    untested.clear()
    assert run() == []
    assert health() == ("ok", "no untested version is known")
