"""Mutants that put mistakes back which were corrected once: each fails a test.

``make mutants ARGS="-k correction"`` runs them; ``-k "live correction"`` some of them against real
routers and an API server. A rule is the behaviour in a few words.

* `routes`: what loses or misroutes traffic, or admits a stranger
* `service_addresses`: the addresses of Services, and how many there may be
* `users`: commands, the chart, the pages
* `system`: the speaker, clusters, dialects
* `survivors`: mutations of one operand that no test noticed
"""

from __future__ import annotations

from typing import Final

from tests.mutants.corrections import routes, service_addresses, survivors, system, users
from tests.mutants.rules import Mutant


def _mutant(prefix: str, change: tuple[str, ...]) -> Mutant:
    behaviour, module, text, replaced_by, *tests = change
    return Mutant(f"{prefix}: {behaviour}", module, text, replaced_by, tuple(tests))


CORRECTIONS: Final = (
    *(
        _mutant("correction", change)
        for part in (routes, service_addresses, users, system, survivors)
        for change in part.CHANGES
    ),
    *(
        _mutant("live correction", change)
        for part in (routes, service_addresses, system)
        for change in part.LIVE
    ),
)
