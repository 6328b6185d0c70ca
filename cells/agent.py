"""The cells of ``waggle-agent``, in the order in which they are listed and, where free, started.

Adding a cell is a line here and a file beside it. This module decides nothing else; the API dialects
are the program's choice.
"""

from __future__ import annotations

from cells import (
    claims,
    database,
    host,
    http,
    intent,
    kubernetes,
    logging,
    manifests,
    metrics,
    node,
    readiness,
    resources,
    snapshot,
    status,
    telemetry,
    unused_objects,
)
from cells.api.cell import CELL as API
from cells.apply.cell import CELL as APPLY
from cells.hive import Cell
from cells.operator.local import CELL as LOCAL_OPERATOR
from cells.report.cell import CELL as REPORT
from cells.speaker.cell import CELL as SPEAKER


def agent_cells(*dialects: Cell) -> tuple[Cell, ...]:
    """Return the cells of an agent with the cells of these API dialects."""
    return (
        logging.CELL,
        telemetry.CELL,
        metrics.CELL,
        http.CELL,
        node.CELL,
        database.CELL,
        resources.CELL,
        *dialects,
        manifests.CELL,
        kubernetes.CELL,
        snapshot.CELL,
        unused_objects.CELL,
        host.CELL,
        claims.CELL,
        LOCAL_OPERATOR,
        intent.CELL,
        SPEAKER,
        APPLY,
        readiness.CELL,
        status.CELL,
        REPORT,
        API,
    )
