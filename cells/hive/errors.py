"""Errors of a composition and of its settings, all of them before the start.

Every error is one sentence that names the cell, the key and its source. None is raised after the start;
`cells.hive.jobs` has the errors of a running program.

    HiveError
     +-- SettingError          a flag, variable or key that is unknown or has the wrong type
     +-- StartError            the outside world refuses something (an address in use)
     +-- CompositionError      cells that do not fit together
          +-- DisabledCellError    a cell needs a cell that is switched off
"""

from __future__ import annotations


class HiveError(Exception):
    """The cells cannot be composed or started; ``str()`` is one sentence."""


class SettingError(HiveError):
    """One setting is unknown or wrong: ``key`` as written; the ``source`` of a key is its file.

    A flag and a variable need none: ``--log-level``, ``WAGGLE_LOG_LEVEL``.
    """

    def __init__(self, source: str, key: str, message: str) -> None:
        super().__init__(f"{source}: {key}: {message}" if source else f"{key}: {message}")
        self.source = source
        self.key = key
        self.message = message


class StartError(HiveError):
    """A start hook failed for a reason outside the program."""


class CompositionError(HiveError):
    """A type with two providers or none, or constructors that need each other."""


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
