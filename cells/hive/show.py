"""The tree of cells for people and for Graphviz: text out of settings and health."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cells.hive.cell import Cell, type_name
from cells.hive.graph import Directory, Need, needs
from cells.hive.health import Status
from cells.hive.option_loading import Settings


class NeedView(msgspec.Struct, frozen=True, order=True):
    """A type that a cell needs, and the cell that provides it."""

    cell: str
    type: str
    optional: bool = False
    """Whether the cell works without it where the other cell is disabled."""

    def __str__(self) -> str:
        """Spell it for the tree: ``Database (database)``."""
        return f"{self.type} ({self.cell}{', optional' * self.optional})"


class CellView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One cell as the API and ``waggle-agent cells`` show it."""

    name: str
    description: str
    enabled: bool
    reason: str = ""
    """Why it is off."""
    needs: tuple[NeedView, ...] = ()
    """Types that it needs of other cells."""
    provides: tuple[str, ...] = ()
    """Types of the values that others may use."""
    contributes: tuple[str, ...] = ()
    """Types of the groups that it has members in."""
    collects: tuple[str, ...] = ()
    """Types of the groups that it receives."""
    health: tuple[Status, ...] = ()
    """The statuses of its scopes, if it runs."""


def views(
    cells: Sequence[Cell], settings: Settings, health: Mapping[str, Sequence[Status]] | None = None
) -> list[CellView]:
    """Describe all cells in the order in which they are listed; imports disabled cells."""
    directory = Directory(cells, settings.enabled)
    return [
        _view(cell, settings, directory, tuple((health or {}).get(cell.name, ()))) for cell in cells
    ]


def running_views(
    cells: Sequence[Cell], settings: Settings, health: Mapping[str, Sequence[Status]]
) -> list[CellView]:
    """Describe all cells of a running program; of disabled cells the declaration alone."""
    enabled = [cell for cell in cells if settings.enabled[cell.name]]
    known = {view.name: view for view in views(enabled, settings, health)}
    return [
        known.get(cell.name)
        or CellView(
            name=cell.name,
            description=cell.description,
            enabled=False,
            reason=settings.reasons.get(cell.name, ""),
        )
        for cell in cells
    ]


def with_wiring(given: Sequence[CellView], declared: Sequence[CellView]) -> list[CellView]:
    """Add the wiring of cells that are off, which a running program has not imported, to its views."""
    known = {view.name: view for view in declared}
    return [
        view
        if view.enabled or view.name not in known
        else msgspec.structs.replace(known[view.name], enabled=False, reason=view.reason)
        for view in given
    ]


def _view(
    cell: Cell, settings: Settings, directory: Directory, health: tuple[Status, ...]
) -> CellView:
    return CellView(
        name=cell.name,
        description=cell.description,
        enabled=settings.enabled[cell.name],
        reason=settings.reasons.get(cell.name, ""),
        needs=_needs(cell, directory),
        provides=_names(provider.type for provider in cell.provided()),
        contributes=_names(provider.type for provider in cell.contributed()),
        collects=_names(need.type for need in _parameters(cell) if need.group),
        health=health,
    )


def _parameters(cell: Cell) -> Iterator[Need]:
    constructors = (*cell.provided(), *cell.kept(), *cell.invoked(), *cell.contributed())
    for make in dict.fromkeys(provider.make for provider in constructors):
        yield from needs(make)


def _needs(cell: Cell, directory: Directory) -> tuple[NeedView, ...]:
    """Return what a cell takes of others, by cell and type."""
    needed = set()
    for need in _parameters(cell):
        owner = None if need.group else directory.find(cell, need.type)
        if owner is not None and owner[0] is not cell:
            needed.add(NeedView(owner[0].name, type_name(need.type), need.optional))
    return tuple(sorted(needed))


def _names(types: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(type_name, types)))


def tree(composition: Sequence[CellView]) -> str:
    """Draw the cells, what they need and provide, and their health, one line each."""
    lines = []
    for cell in composition:
        own = [status for status in cell.health if len(status.path) == 1]
        state = "enabled" if cell.enabled else "disabled"
        if own:
            state = _state(own[0])
        elif cell.reason:
            state += f" ({cell.reason})"
        lines.append(f"{cell.name}: {state}")
        lines.append(f"    {cell.description}")
        if cell.needs:
            lines.append("    needs " + ", ".join(map(str, cell.needs)))
        if cell.provides:
            lines.append(f"    provides {', '.join(cell.provides)}")
        if cell.contributes:
            lines.append(f"    contributes {', '.join(cell.contributes)}")
        if cell.collects:
            lines.append(f"    collects {', '.join(cell.collects)}")
        lines += [
            f"    - {'/'.join(status.path[1:])}: {_state(status)}"
            for status in cell.health
            if len(status.path) > 1
        ]
    return "\n".join(lines)


def dot(composition: Sequence[CellView]) -> str:
    """Write the graph for Graphviz: an arrow from a cell to each that it needs, labelled by type.

    A dashed arrow leads from a cell to the receiver of its contributions.
    """
    lines = ["digraph cells {", "    rankdir=LR;", "    node [shape=box];"]
    for cell in composition:
        style = "" if cell.enabled else ", style=dashed, fontcolor=gray"
        lines.append(f'    "{cell.name}" [tooltip="{cell.description}"{style}];')
        for owner in dict.fromkeys(need.cell for need in cell.needs):
            label = "\\n".join(need.type for need in cell.needs if need.cell == owner)
            lines.append(f'    "{cell.name}" -> "{owner}" [label="{label}"];')
        for receiver in composition:
            label = "\\n".join(kind for kind in cell.contributes if kind in receiver.collects)
            if label and receiver is not cell:
                arrow = f'"{cell.name}" -> "{receiver.name}"'
                lines.append(f'    {arrow} [label="{label}", style=dashed];')
    return "\n".join([*lines, "}"])


def _state(status: Status) -> str:
    text = str(status.level)
    if status.message:
        text += f": {status.message}"
    return f"{text} (since {status.time:%Y-%m-%dT%H:%M:%SZ})"
