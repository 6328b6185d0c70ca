"""Random mutants that no test can notice, each with the reason."""

from __future__ import annotations

from typing import Final, NamedTuple


class Equivalent(NamedTuple):
    """A change of the line ``text`` of a module (without its indentation) that changes no behaviour."""

    module: str
    text: str
    change: str
    """As printed: ``old -> new``."""
    reason: str


EQUIVALENT: Final[tuple[Equivalent, ...]] = ()
