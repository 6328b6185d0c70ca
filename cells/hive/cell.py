"""A cell: a named, switchable part of a program, as plain data.

The declaration (name, options, switches) is light: ``--help`` needs no more of a cell, and nothing else
is imported of a disabled cell. Its wiring lists constructors: what it provides to others, what it keeps
for itself, what is constructed in any case, and what it contributes to groups. A constructor is a class
or a function; its typed parameters are the only declaration of what it needs. `cells.hive.graph`
resolves them.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec

from cells.hive.errors import CompositionError
from resources.option_declarations import Options

T = TypeVar("T")

Constructor = Callable[..., Any]


class Group(tuple[T, ...]):
    """Parameter type: the values of type ``T`` that the enabled cells contribute, in cell order."""

    __slots__ = ()


class Late(Generic[T]):
    """Parameter type: a value that exists once all cells are constructed; a call returns it.

    For a receiver that its own contributors depend on: a metrics collector needs the object that it
    reads, which needs the metrics. A late parameter adds nothing to the order of construction.
    """

    __slots__ = ("_make", "_value")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._value: list[T] = []

    def __call__(self) -> T:
        """Return the value; a constructor must not call this."""
        if not self._value:
            raise CompositionError("a late value is used before all cells are constructed")
        return self._value[0]

    def resolve(self) -> None:
        """Construct the value; called by the hive, once."""
        self._value = [self._make()]


class Provider(msgspec.Struct, frozen=True):
    """A constructor and the type by which parameters refer to what it makes.

    ``many``: the constructor returns a tuple of such values; only for contributions.
    """

    make: Constructor
    type: Any
    many: bool = False

    @property
    def name(self) -> str:
        """Name of the constructor, for messages."""
        return getattr(self.make, "__qualname__", repr(self.make))


def provide(make: Constructor, *, as_: Any = None) -> Provider:  # noqa: ANN401 - any type form
    """Return the provider of a constructor.

    ``as_`` is the type by which others refer to the value, where that is a protocol or a base class;
    by default it is the class itself, or the return annotation of a function. Raises
    `CompositionError` where a class lacks methods of its protocol, or is not derived from its base.
    """
    made = _made(make)
    if as_ is None:
        return Provider(make, made)
    many = typing.get_origin(made) is tuple
    item = typing.get_args(made)[0] if many else made
    _check_fits(item, as_, make)
    return Provider(make, as_, many)


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """The constructors of a cell; a constructor that is listed more than once makes one value."""

    provides: tuple[Constructor | Provider, ...] = ()
    """Constructors of values that any cell may use."""
    private: tuple[Constructor | Provider, ...] = ()
    """Constructors of values for this cell alone."""
    invokes: tuple[Constructor | Provider, ...] = ()
    """Constructors that run even if no parameter refers to what they make."""
    contributes: tuple[Constructor | Provider, ...] = ()
    """Constructors of members of groups; the items of a tuple are members."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One switchable part of a program."""

    name: str
    description: str
    wiring: str | Wiring = Wiring()
    """The constructors, or the module that has them as ``WIRING``: imported where the cell is on."""
    options: type[msgspec.Struct] = Options
    on_by_default: bool = True
    """Whether the cell is on where neither flag, environment nor file decides."""
    on_with: str | None = None
    """The option without which the cell is off by default, or None: the cell is on by default."""
    on_beside: str | None = None
    """The cell without which this one is off by default: it has nothing to do then."""
    needs: str | None = None
    """A cell without which this one does nothing: it is switched on with this one, unless it is off by
    name, which is an error."""
    off_beside: str | None = None
    """The cell beside which this one is off by default: that one does its work."""
    off_while: Callable[[Any, Mapping[str, Any]], str] | None = None
    """Returns why the cell is off by default, or an empty text, by its options and the options
    of the cells that are on for other reasons, by name."""

    def wired(self) -> Wiring:
        """Return the constructors; imports the module that has them."""
        if isinstance(self.wiring, Wiring):
            return self.wiring
        return _imported(self.wiring)

    def provided(self) -> Iterator[Provider]:
        """Yield what any cell may use."""
        return (_provider(item) for item in self.wired().provides)

    def kept(self) -> Iterator[Provider]:
        """Yield what this cell alone may use."""
        return (_provider(item) for item in self.wired().private)

    def invoked(self) -> Iterator[Provider]:
        """Yield what is constructed in any case."""
        return (_provider(item) for item in self.wired().invokes)

    def contributed(self) -> Iterator[Provider]:
        """Yield the contributions, each by the type of its group."""
        for item in self.wired().contributes:
            provider = _provider(item)
            if typing.get_origin(provider.type) is tuple:
                provider = Provider(provider.make, typing.get_args(provider.type)[0], many=True)
            yield provider


def check_names(cells: Iterable[Cell]) -> None:
    """Refuse cells of one name. Raises `CompositionError`.

    ``-`` and ``_`` are the same letter: flags and variables spell them alike.
    """
    known: dict[str, Cell] = {}
    for cell in cells:
        other = known.setdefault(cell.name.replace("-", "_"), cell)
        if other is not cell:
            names = cell.name if cell.name == other.name else f"{other.name} and {cell.name}"
            texts = f"{other.description!r} and {cell.description!r}"
            raise CompositionError(f"two cells have one name, {names}: {texts}")


def type_name(kind: Any) -> str:  # noqa: ANN401 - any type form
    """Spell a type as its annotation does, without the modules."""
    arguments = [argument for argument in typing.get_args(kind) if argument is not Ellipsis]
    origin = typing.get_origin(kind)
    if origin is None or not arguments:
        return getattr(kind, "__name__", None) or str(kind)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(type_name, arguments))
    parts = (
        f"[{', '.join(map(type_name, part))}]" if isinstance(part, list) else type_name(part)
        for part in arguments
    )
    return f"{getattr(origin, '__name__', origin)}[{', '.join(parts)}]"


@functools.cache
def _imported(module: str) -> Wiring:
    wiring: Wiring = importlib.import_module(module).WIRING
    return wiring


@functools.cache
def _provider(item: Constructor | Provider) -> Provider:
    return item if isinstance(item, Provider) else provide(item)


def _made(make: Constructor) -> Any:  # noqa: ANN401 - any type form
    """Return the type of what a constructor makes."""
    if inspect.iscoroutinefunction(make):
        raise CompositionError(f"{getattr(make, '__qualname__', make)} is a coroutine function")
    if isinstance(make, type):
        return make
    made = hints(make).get("return")
    if made is None:
        raise CompositionError(f"{make!r} has no return annotation, so its type is unknown")
    return made


@functools.cache
def hints(make: Constructor) -> Mapping[str, Any]:
    """Evaluate the annotations of a function, once: a start needs them often, for each constructor.

    Raises `CompositionError` where a name is undefined.
    """
    try:
        return MappingProxyType(typing.get_type_hints(make))
    except NameError as error:
        raise CompositionError(f"{getattr(make, '__qualname__', make)}: {error}") from error


def parameters(make: Constructor) -> Iterator[tuple[str, Any, bool]]:
    """Yield name, type and "has a default" of each parameter of a constructor."""
    source: Any = make
    if isinstance(make, type):
        own = inspect.getattr_static(make, "__init__")
        if own is inspect.getattr_static(object, "__init__"):
            return
        # An __init__ in C (that of msgspec's structs) has no annotations; the class has them.
        source = own if isinstance(own, types.FunctionType) else make
    known = hints(source)
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name not in known:
            where = getattr(make, "__qualname__", make)
            raise CompositionError(f"parameter {name} of {where} has no type")
        yield name, known[name], parameter.default is not parameter.empty


def _check_fits(made: Any, wanted: Any, make: Constructor) -> None:  # noqa: ANN401 - any type form
    origin, target = typing.get_origin(made) or made, typing.get_origin(wanted) or wanted
    if not isinstance(origin, type) or not isinstance(target, type):
        return
    what = f"{getattr(make, '__qualname__', make)} makes a {type_name(made)}"
    if not getattr(target, "_is_protocol", False):
        if not issubclass(origin, target):
            raise CompositionError(f"{what}, which is not a {type_name(wanted)}")
        return
    missing = sorted(name for name in _methods(target) if not hasattr(origin, name))
    if missing:
        lacks = f"which has no {', '.join(missing)} of {type_name(wanted)}"
        raise CompositionError(f"{what}, {lacks}")


def _methods(protocol: type) -> set[str]:
    """Names of the methods and properties of a protocol; its attributes exist on instances only."""
    names: set[str] = set()
    for base in protocol.__mro__:
        if getattr(base, "_is_protocol", False) and base is not typing.Protocol:
            names |= set(vars(base))
    return {name for name in names if not name.startswith("_") or name == "__call__"}
