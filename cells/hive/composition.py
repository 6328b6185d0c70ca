"""The composition of a running program: which cells there are, which are on, and their health."""

from __future__ import annotations

from collections.abc import Sequence

from cells.hive.cell import Cell
from cells.hive.health import HealthTree
from cells.hive.option_loading import Settings
from cells.hive.show import CellView, running_views


class Composition:
    """The cells of a program with their settings."""

    def __init__(self, cells: Sequence[Cell], settings: Settings, health: HealthTree) -> None:
        self._cells = cells
        self._settings = settings
        self._health = health

    def disabled(self) -> tuple[Cell, ...]:
        """Return the cells that are off."""
        return tuple(cell for cell in self._cells if not self._settings.enabled[cell.name])

    def views(self) -> list[CellView]:
        """Describe all cells, and the health of the enabled ones."""
        health = {
            cell.name: list(self._health.scope(cell.name).report())
            for cell in self._cells
            if self._settings.enabled[cell.name]
        }
        return running_views(self._cells, self._settings, health)
