"""The object graph of the enabled cells: every parameter resolved to a provider, by type.

Built of `dependency_injector` providers: a singleton per constructor, with keyword arguments. All
errors of composition are found here, before anything is constructed: a type that no cell provides, a
provider in a disabled cell, two providers of one type, constructors that need each other.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from dependency_injector import providers

from cells.hive.cell import Cell, Constructor, Group, Late, Provider, parameters, type_name
from cells.hive.errors import CompositionError, DisabledCellError

Given = Callable[[Cell], Mapping[Any, object]]
"""The values that the hive gives to a cell, by type."""
Key = tuple[str, Constructor]
"""A constructor in its cell, which makes one value."""


class Need(msgspec.Struct, frozen=True):
    """One parameter of a constructor, with its type taken apart."""

    name: str
    type: Any
    """Without `Late`, `Group` and ``None``."""
    optional: bool
    has_default: bool
    late: bool
    group: bool


@functools.cache
def needs(make: Constructor) -> tuple[Need, ...]:
    """Return the parameters of a constructor."""
    return tuple(_need(*parameter) for parameter in parameters(make))


def _need(name: str, kind: Any, has_default: bool) -> Need:  # noqa: ANN401 - a type form
    late = typing.get_origin(kind) is Late
    if late:
        kind = typing.get_args(kind)[0]
    optional = False
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        rest = [item for item in typing.get_args(kind) if item is not type(None)]
        if len(rest) == 1 and len(typing.get_args(kind)) == 2:
            kind, optional = rest[0], True
    group = typing.get_origin(kind) is Group
    if group:
        kind = typing.get_args(kind)[0]
    return Need(name, kind, optional, has_default, late, group)


class Directory:
    """The cell that provides each type, and the cells that contribute to each group."""

    def __init__(self, cells: Sequence[Cell], enabled: Mapping[str, bool]) -> None:
        self._enabled = enabled
        self._owners: dict[Any, tuple[Cell, Provider]] = {}
        self._private: dict[tuple[str, Any], tuple[Cell, Provider]] = {}
        self.groups: dict[Any, list[tuple[Cell, Provider]]] = {}
        for cell in cells:
            self._add(cell)

    def is_enabled(self, cell: Cell) -> bool:
        """Whether a cell is switched on."""
        return self._enabled[cell.name]

    def find(self, cell: Cell, kind: Any) -> tuple[Cell, Provider] | None:  # noqa: ANN401 - a type
        """Return the provider of a type for a cell; that of a disabled cell if there is no other."""
        return self._private.get((cell.name, kind)) or self._owners.get(kind)

    def contributions(self, kind: Any) -> list[tuple[Cell, Provider]]:  # noqa: ANN401 - a type
        """Return what the enabled cells contribute to a group, in the order of the cells."""
        return [entry for entry in self.groups.get(kind, ()) if self.is_enabled(entry[0])]

    def _add(self, cell: Cell) -> None:
        for provider in cell.provided():
            other = self._owners.get(provider.type)
            if other is not None and other[0] is not cell:
                if self.is_enabled(other[0]) and self.is_enabled(cell):
                    both = f"cells {other[0].name} and {cell.name}"
                    raise CompositionError(f"{both} both provide {type_name(provider.type)}")
                if self.is_enabled(other[0]) or not self.is_enabled(cell):
                    continue
            elif other is not None:
                twice = f"cell {cell.name} provides {type_name(provider.type)} twice"
                raise CompositionError(twice)
            self._owners[provider.type] = (cell, provider)
        for provider in cell.kept():
            self._private[cell.name, provider.type] = (cell, provider)
        for provider in cell.contributed():
            self.groups.setdefault(provider.type, []).append((cell, provider))


class Graph:
    """The providers of the enabled cells.

    Raises `CompositionError` for cells that do not fit together.
    """

    def __init__(self, cells: Sequence[Cell], enabled: Mapping[str, bool], given: Given) -> None:
        self._enabled = [cell for cell in cells if enabled[cell.name]]
        # Cells that are off are not imported, unless one is needed: an error names it.
        self.directory = Directory(self._enabled, enabled)
        self._all = functools.partial(Directory, cells, enabled)
        self._keys = {cell.name: _keys(cell) for cell in self._enabled}
        self._public: dict[Any, Key] = {}
        """The constructors whose values `get` returns, by type."""
        self._singletons: dict[Key, Any] = {}
        self._eager: dict[Key, list[Key]] = {}
        """Objects that are constructed before a constructor runs."""
        self._late: list[Late[Any]] = []
        for cell in self._enabled:
            for key in self._keys[cell.name]:
                self._singletons[key] = providers.Singleton(key[1])
            for provider in (*cell.provided(), *cell.invoked()):
                self._public.setdefault(provider.type, (cell.name, provider.make))
        for cell in self._enabled:
            self._wire(cell, given(cell))
        self._refuse_cycles()

    def construct(self) -> None:
        """Construct what the cells invoke: providers first, otherwise in the order of the cells."""
        seen: set[str] = set()
        by_name = {cell.name: cell for cell in self._enabled}

        def visit(cell: Cell) -> None:
            if cell.name in seen:
                return
            seen.add(cell.name)
            for key in self._keys[cell.name]:
                for owner, _ in self._eager[key]:
                    visit(by_name[owner])
            for provider in cell.invoked():
                self._singletons[cell.name, provider.make]()

        for cell in self._enabled:
            visit(cell)
        for late in self._late:
            late.resolve()

    def get(self, kind: Any) -> Any:  # noqa: ANN401 - a type form, and an instance of it
        """Return the value of this type that an enabled cell provides or invokes."""
        key = self._public.get(kind)
        if key is None:
            raise CompositionError(f"no enabled cell provides {type_name(kind)}")
        return self._singletons[key]()

    def _wire(self, cell: Cell, given: Mapping[Any, object]) -> None:
        for key in self._keys[cell.name]:
            self._eager[key] = []
            for need in needs(key[1]):
                provider = self._resolve(cell, key, need, given)
                if provider is None:
                    continue
                if need.late:
                    late: Late[Any] = Late(provider)
                    self._late.append(late)
                    provider = providers.Object(late)
                self._singletons[key].add_kwargs(**{need.name: provider})

    def _resolve(self, cell: Cell, key: Key, need: Need, given: Mapping[Any, object]) -> Any:  # noqa: ANN401 - a provider
        """Return the provider for a parameter; None where its default stays."""
        eager = [] if need.late else self._eager[key]
        if need.group:
            members = self.directory.contributions(need.type)
            eager += [(owner.name, provider.make) for owner, provider in members]
            many = [provider.many for _, provider in members]
            made = [self._singletons[owner.name, provider.make] for owner, provider in members]
            return providers.Singleton(_gather, providers.Object(many), *made)
        if need.type in given:
            return providers.Object(given[need.type])
        if _is_base_of(need.type, cell.options):
            return providers.Object(given[cell.options])
        provided = self.directory.find(cell, need.type)
        if provided is not None:
            owner, provider = provided
            eager.append((owner.name, provider.make))
            return self._singletons[owner.name, provider.make]
        if need.has_default:
            return None
        if need.optional:
            return providers.Object(None)
        disabled = self._all().find(cell, need.type)
        if disabled is not None:
            raise DisabledCellError(cell.name, type_name(need.type), disabled[0].name)
        what = f"{type_name(need.type)} (parameter {need.name} of {_name(key[1])})"
        raise CompositionError(f"cell {cell.name} needs {what}, which no cell provides")

    def _refuse_cycles(self) -> None:
        done: set[Key] = set()
        path: list[Key] = []

        def visit(key: Key) -> None:
            if key in done:
                return
            if key in path:
                circle = [*path[path.index(key) :], key]
                names = " -> ".join(f"{_name(make)} of {cell}" for cell, make in circle)
                raise CompositionError(f"constructors need each other: {names}")
            path.append(key)
            for needed in self._eager[key]:
                visit(needed)
            path.pop()
            done.add(key)

        for key in self._singletons:
            visit(key)


def _keys(cell: Cell) -> list[Key]:
    constructors = (*cell.provided(), *cell.kept(), *cell.invoked(), *cell.contributed())
    return list(dict.fromkeys((cell.name, provider.make) for provider in constructors))


def _gather(many: Sequence[bool], *made: Any) -> Group[Any]:  # noqa: ANN401 - of any group
    members: list[Any] = []
    for is_many, value in zip(many, made, strict=True):
        members += value if is_many else (value,)
    return Group(members)


def _is_base_of(kind: Any, options: type[msgspec.Struct]) -> bool:  # noqa: ANN401 - a type form
    """Whether a parameter of this type takes the cell's options."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct) and issubclass(options, kind)


def _name(make: Constructor) -> str:
    return getattr(make, "__qualname__", repr(make))
