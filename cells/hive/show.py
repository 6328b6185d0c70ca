"""The tree of cells for people and for Graphviz: text out of settings and health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cells.hive.cell import Cell
from cells.hive.health import Status
from cells.hive.settings import Settings


class CellView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One cell as the API and ``waggle-agent cells`` show it."""

    name: str
    description: str
    enabled: bool
    reason: str = ""
    """Why it is off."""
    needs: tuple[str, ...] = ()
    """Cells whose outputs it takes."""
    provides: tuple[str, ...] = ()
    health: tuple[Status, ...] = ()
    """What its scopes have reported, if it runs."""


def views(
    cells: Sequence[Cell], settings: Settings, health: Mapping[str, Sequence[Status]] | None = None
) -> list[CellView]:
    """Describe all cells in the order in which they are listed."""
    owners = {name: cell.name for cell in cells for name in cell.outputs}
    return [
        CellView(
            name=cell.name,
            description=cell.description,
            enabled=settings.enabled[cell.name],
            reason=settings.reasons.get(cell.name, ""),
            needs=tuple(sorted({owners[name] for name in cell.inputs if name in owners})),
            provides=cell.outputs,
            health=tuple((health or {}).get(cell.name, ())),
        )
        for cell in cells
    ]


def tree(found: Sequence[CellView]) -> str:
    """Draw the cells, what they need and provide, and their health, one line each."""
    lines = []
    for cell in found:
        own = [status for status in cell.health if len(status.path) == 1]
        state = "enabled" if cell.enabled else "disabled"
        if own:
            state = _state(own[0])
        elif cell.reason:
            state += f" ({cell.reason})"
        lines.append(f"{cell.name}: {state}")
        lines.append(f"    {cell.description}")
        if cell.needs:
            lines.append(f"    needs {', '.join(cell.needs)}")
        if cell.provides:
            lines.append(f"    provides {', '.join(cell.provides)}")
        lines += [
            f"    - {'/'.join(status.path[1:])}: {_state(status)}"
            for status in cell.health
            if len(status.path) > 1
        ]
    return "\n".join(lines)


def dot(found: Sequence[CellView]) -> str:
    """Write the graph for Graphviz; an arrow points from a cell to one that it needs."""
    lines = ["digraph cells {", "    rankdir=LR;", "    node [shape=box];"]
    for cell in found:
        style = "" if cell.enabled else ", style=dashed, fontcolor=gray"
        lines.append(f'    "{cell.name}" [tooltip="{cell.description}"{style}];')
        lines += [f'    "{cell.name}" -> "{need}";' for need in cell.needs]
    return "\n".join([*lines, "}"])


def _state(status: Status) -> str:
    text = str(status.level)
    if status.message:
        text += f": {status.message}"
    return f"{text} (since {status.time:%Y-%m-%dT%H:%M:%SZ})"
