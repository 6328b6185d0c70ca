"""Head sampling: the draw of the traces that are begun, before a span is made.

The SDK's sampler decides while it makes a span, with IDs, a context that is attached and detached, and
a result: a tenth of the calls of a change of which nothing is sent. So the roots are drawn first, and a
trace that is not begun has no span, no context and no ID; what follows from its change has the cause
`resources.trace_links.UNSAMPLED`.
"""

from __future__ import annotations

import random
from typing import Final, final


@final
class Roots:
    """The part of the traces that are begun."""

    __slots__ = ("share",)

    def __init__(self) -> None:
        self.share = 1.0
        """From 0 to 1; less than 1 where a part of the traces is sent, and none kept."""

    def draw(self) -> bool:
        """Return whether the next trace is begun."""
        share = self.share
        return share >= 1.0 or random.random() < share  # noqa: S311  no secret


ROOTS: Final = Roots()
"""Of the process, as OpenTelemetry's tracer provider is; set by the cell that installs that one."""
