"""The log level in effect: of a person, of objects, of the configuration, in this order."""

from __future__ import annotations

import logging
from collections.abc import Callable

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "none": logging.CRITICAL}


class LogLevels:
    """The levels that are set, and the one in effect; ``changed`` is called after each change."""

    def __init__(self, configured: str, changed: Callable[[], None]) -> None:
        self.configured = configured
        self.overrides: dict[str, str] = {}
        """Levels that objects set, by dialect; the most verbose level is in effect."""
        self._chosen: str | None = None
        self._changed = changed

    @property
    def level(self) -> str:
        """The level in effect."""
        if self._chosen is not None:
            return self._chosen
        return min(self.overrides.values(), key=LEVELS.__getitem__, default=self.configured)

    @property
    def is_chosen(self) -> bool:
        """Whether a person has set the level."""
        return self._chosen is not None

    @property
    def set_by(self) -> list[str]:
        """The objects or the command that set the level in place of the configuration."""
        return ["waggle log"] if self.is_chosen else sorted(self.overrides)

    def choose(self, level: str | None) -> None:
        """Set the level of a person, until the program ends or None."""
        self._chosen = level
        self._changed()

    def override(self, by: str, level: str | None) -> None:
        """Set the level of an object; None: no longer."""
        if level is None:
            self.overrides.pop(by, None)
        else:
            self.overrides[by] = level
        self._changed()

    def configure(self, level: str) -> None:
        """Set the configured level; while others set one, it takes effect after them."""
        self.configured = level
        self._changed()
