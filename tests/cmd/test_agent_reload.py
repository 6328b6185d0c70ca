"""What a configuration file that is read again changes in a running agent, and what it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from cells.hive import HiveError, SettingError, Settings, load
from cells.hive.hive import Hive
from resources.manifests.source import ManifestsSource
from tests.support.wait import until
from waggle_agent.__main__ import CELLS
from waggle_agent.reload import Reload, changed_settings

QUIET = {"disable_cell": ["logging", "api"]}
"""No output and no socket."""


def settings(cells: Mapping[str, Any], **flags: Any) -> Settings:  # noqa: ANN401
    """Return the settings of an agent whose file has these cells."""
    return load(CELLS, flags=flags, file={"cells": cells})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({}, {"logging": {"level": "info"}}, []),
        ({"logging": {"level": "debug"}}, {}, ["cells.logging.level"]),
        (
            {},
            {"intent": {"advertiseDeny": ["192.0.2.0/24"]}, "node": {"name": "n1"}},
            ["cells.node.name", "cells.intent.advertiseDeny"],
        ),
        ({}, {"host": {"enabled": False}}, ["cells.host.enabled"]),
        # The cell is on for its option.
        ({}, {"http": {"address": "9100"}}, ["cells.http.address"]),
        ({"http": {"address": "9100"}}, {}, ["cells.http.address"]),
    ],
)
def test_each_changed_setting_has_its_key(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    assert changed_settings(CELLS, settings(before), settings(after)) == expected


def test_a_setting_that_a_flag_overrides_has_not_changed() -> None:
    flag = {"--log-level": "error"}
    before, after = (settings({"logging": {"level": level}}, **flag) for level in ("info", "debug"))
    assert changed_settings(CELLS, before, after) == []


def reloaded(
    *reads: Callable[[], Settings], flags: Mapping[str, Any] = QUIET
) -> list[dict[str, Any]]:
    """Return the log of an agent that reads again as often."""
    hive = Hive(CELLS, load(CELLS, flags=flags))
    answers: Iterator[Callable[[], Settings]] = iter(reads)

    async def scenario(lines: list[Any]) -> None:
        reload = Reload(hive, lambda: next(answers)())
        task = asyncio.create_task(reload.run())
        for count in range(1, len(reads) + 1):
            reload.request()
            await until(lambda count=count: _ended(lines) == count)  # type: ignore[misc]
        task.cancel()

    with capture_logs() as logs:
        asyncio.run(scenario(logs))
    return [
        {key: value for key, value in line.items() if key in {"event_name", "setting", "reason"}}
        for line in logs
    ]


def _ended(lines: list[dict[str, Any]]) -> int:
    return sum(line["event_name"] in {"agent.reload", "agent.reload_failed"} for line in lines)


def test_a_setting_is_named_until_it_is_as_before() -> None:
    other = load(CELLS, flags=QUIET, file={"cells": {"intent": {"drain": "deprefer"}}})
    same = load(CELLS, flags=QUIET)
    pending = {"event_name": "agent.setting_pending", "setting": "cells.intent.drain"}
    done = {"event_name": "agent.reload"}
    assert reloaded(lambda: other, lambda: other, lambda: same) == [
        *(pending, done),
        *(pending, done),
        done,
    ]


def test_an_error_changes_nothing_and_the_next_request_is_served() -> None:
    def raises(error: Exception) -> Callable[[], Settings]:
        def read() -> Settings:
            raise error

        return read

    reads = (
        raises(SettingError("waggle.yaml", "cells.http.adress", "unknown key")),
        raises(HiveError("excluded")),
        raises(RecursionError("too deep")),
        lambda: load(CELLS, flags=QUIET),
    )
    assert reloaded(*reads) == [
        *(
            {"event_name": "agent.reload_failed", "reason": reason}
            for reason in (
                "waggle.yaml: cells.http.adress: unknown key",
                "excluded",
                "RecursionError: too deep",
            )
        ),
        {"event_name": "agent.reload"},
    ]


def test_the_level_of_an_agent_that_does_not_log_needs_a_restart() -> None:
    other = load(CELLS, flags=QUIET, file={"cells": {"logging": {"level": "debug"}}})
    assert reloaded(lambda: other)[0] == {
        "event_name": "agent.setting_pending",
        "setting": "cells.logging.level",
    }


def test_manifests_are_scanned_whatever_the_configuration_file_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[ManifestsSource] = []
    monkeypatch.setattr(ManifestsSource, "rescan", lambda self: scans.append(self))
    flags = {**QUIET, "--manifests": [str(tmp_path)], "--node-name": "n1"}

    def unusable() -> Settings:
        raise SettingError("waggle.yaml", "cells.http.adress", "unknown key")

    reloaded(lambda: load(CELLS, flags=flags), unusable, flags=flags)
    assert len(scans) == 2
    reloaded(lambda: load(CELLS, flags=QUIET))
    assert len(scans) == 2
