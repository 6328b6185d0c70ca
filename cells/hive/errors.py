"""What can be wrong with a composition or its settings, before anything has started.

Every error is one sentence for a person and names the cell, the key and the place that it came
from. Nothing here is raised once the agent has started; see ``cells.hive.jobs`` for that.

    HiveError
     +-- SettingError          a flag, variable or key that is unknown or has the wrong type
     +-- StartError            the outside world refuses something (an address in use)
     +-- CompositionError      cells that do not fit together
          +-- DisabledCellError    a cell needs one that is switched off
"""

from __future__ import annotations


class HiveError(Exception):
    """The tree cannot be built or started as asked; ``str()`` is one sentence."""


class SettingError(HiveError):
    """One setting is unknown or wrong: ``key`` as written, ``source`` (flag, variable, file)."""

    def __init__(self, source: str, key: str, message: str) -> None:
        super().__init__(f"{source}: {key}: {message}" if source else f"{key}: {message}")
        self.source = source
        self.key = key
        self.message = message


class StartError(HiveError):
    """A start hook met something that only the outside can change."""


class CompositionError(HiveError):
    """Two cells provide one thing, nobody provides a thing, or cells need each other."""


class DisabledCellError(CompositionError):
    """``cell`` needs ``what``, which only the disabled cell ``needs`` provides."""

    def __init__(self, cell: str, what: str, needs: str) -> None:
        super().__init__(
            f"cell {cell} needs {what} of cell {needs}, which is disabled: "
            f"enable {needs} (--enable-cell {needs}) or disable {cell} as well"
        )
        self.cell = cell
        self.what = what
        self.needs = needs
