"""The path of the log level: what is in effect, and a level until the program ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cells.api.model import LogLevelItem
from cells.api.resource import ApiAction, ApiResource
from cells.observability.logging.levels import LogLevels

KIND = "LogLevelList"


class SetLevel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body: a level, or none for the one of the configuration."""

    level: Literal["debug", "info", "warning", "error", "none"] | None = None


def log_resource(levels: LogLevels) -> ApiResource:
    """Return the path that reads the level."""
    return ApiResource(path="/v1/log", kind=KIND, read=lambda _: [_item(levels)])


def log_action(levels: LogLevels) -> ApiAction:
    """Return the path that sets the level."""

    async def run(body: SetLevel) -> Sequence[LogLevelItem]:
        levels.choose(body.level)
        return [_item(levels)]

    return ApiAction(path="/v1/log", kind=KIND, run=run, body=SetLevel)


def _item(levels: LogLevels) -> LogLevelItem:
    return LogLevelItem(
        level=levels.level,
        configured=levels.configured,
        chosen=levels.is_chosen,
        set_by=sorted(levels.overrides),
    )
