"""The API dialects of ``waggle``: their options for the flags, and they themselves when needed.

Importing this module is cheap; a dialect's reconcilers are imported by `load` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcilers.cilium.options import CiliumOptions
from resources.option_declarations import Options

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect

OPTIONS: dict[str, type[Options]] = {"cilium": CiliumOptions}
"""By the name of the dialect."""


def load() -> tuple[type[Dialect], ...]:
    """Return the dialects, all of which are on."""
    from reconcilers.cilium.dialect import CiliumDialect

    return (CiliumDialect,)
