"""The spellings of a declared option: flag, environment variable and key of the configuration file.

The declarations are in `resources.option_declarations`. `cells.hive.option_loading` reads the values
of programs with cells from flags, environment and file; `waggle` reads flags alone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as shapes

ENV_PREFIX = "WAGGLE_"


class Setting(msgspec.Struct, frozen=True):
    """One option of one cell in all its spellings."""

    cell: str
    field: str
    key: str
    """Its name in the configuration file."""
    flag: str
    env: str
    type: Any
    default: Any
    help: str
    metavar: str
    is_list: bool
    is_bool: bool
    is_number: bool
    """A number, or one of `choices`."""
    choices: tuple[str, ...]
    """The words that are values; empty where any text is."""


def list_items(*texts: str) -> list[str]:
    """Return the items of a list option as spelt in texts: each is one item, or several and commas."""
    return [item for text in texts for part in text.split(",") if (item := part.strip())]


@functools.cache
def describe(cell: str, options: type[msgspec.Struct]) -> tuple[Setting, ...]:
    """Return the spellings of the options that a cell declares, in order of declaration."""
    return tuple(_described(cell, options))


def _described(cell: str, options: type[msgspec.Struct]) -> Iterator[Setting]:
    fields = msgspec.structs.fields(options)  # Evaluates the annotations, so once.
    for field, described in zip(
        fields, shapes.multi_type_info(f.type for f in fields), strict=True
    ):
        kind, meta = _unwrap(described)
        extra = meta.extra or {} if meta is not None else {}
        schema = meta.extra_json_schema or {} if meta is not None else {}
        flag = extra.get("flag") or f"--{cell}-{field.name.replace('_', '-')}"
        variants = kind.types if isinstance(kind, shapes.UnionType) else (kind,)
        shape = next(v for v in variants if not isinstance(v, shapes.NoneType))
        literals = (v.values for v in variants if isinstance(v, shapes.LiteralType))
        choices = tuple(str(value) for values in literals for value in values)
        if choices and any(isinstance(variant, shapes.BoolType) for variant in variants):
            choices = (*choices, "true", "false")
        yield Setting(
            cell=cell,
            field=field.name,
            key=field.encode_name,
            flag=flag,
            env=ENV_PREFIX + flag.removeprefix("--").replace("-", "_").upper(),
            type=field.type,
            default=field.default,
            help=str(schema.get("description", "")),
            metavar=extra.get("metavar") or _metavar(shape, choices),
            is_list=isinstance(shape, shapes.VarTupleType),
            is_bool=isinstance(shape, shapes.BoolType),
            is_number=isinstance(shape, shapes.IntType | shapes.FloatType),
            choices=choices,
        )


def _unwrap(kind: shapes.Type) -> tuple[shapes.Type, shapes.Metadata | None]:
    return (kind.type, kind) if isinstance(kind, shapes.Metadata) else (kind, None)


def _metavar(shape: shapes.Type, choices: tuple[str, ...]) -> str:
    if choices:
        return "|".join(choices)
    match shape:
        case shapes.IntType() | shapes.FloatType():
            return "N"
        case shapes.BoolType():
            return "true|false"
        case _:
            return "VALUE"
