"""Checks a JSON object against a row type and names everything that is wrong, not only the first.

`msgspec` decodes and stops at the first error; this walk is for the objects that it refuses, and to
name the fields that a row type does not have. The rules are the row type's own annotations, so that
there is one place where a limit is written.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect as shapes

from resources.errors import FieldError
from resources.secret_value import SecretValue


@functools.cache
def shape_of(row: type) -> shapes.Type:
    """Describe a row type; worked out once."""
    return shapes.type_info(row)


def structural_errors(value: Any, row: type) -> list[FieldError]:  # noqa: ANN401
    """List what breaks the types and limits of a row type."""
    return list(_check(value, shape_of(row), ""))


def unknown_fields(value: Any, row: type) -> list[FieldError]:  # noqa: ANN401
    """List the fields that a row type does not have, with the name that was probably meant."""
    return list(_unknown(value, shape_of(row), ""))


def without_nulls(value: Any) -> Any:  # noqa: ANN401
    """Leave out fields that are null: for Kubernetes they are absent."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(v) for v in value]
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _show(value: Any) -> str:  # noqa: ANN401
    text = repr(value) if isinstance(value, str) else str(value)
    if isinstance(value, bool):
        text = text.lower()
    return text if len(text) <= 64 else text[:63] + "…"


def _kind_of(value: Any) -> str:  # noqa: ANN401
    names = {
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a number with a fraction",
        list: "a list",
        dict: "an object",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


def _expected(path: str, value: Any, what: str) -> FieldError:  # noqa: ANN401
    shown = "" if isinstance(value, dict | list) else f" {_show(value)}"
    return FieldError(path, f"expected {what}, got {_kind_of(value)}{shown}")


def _check(value: Any, shape: shapes.Type, path: str) -> Iterator[FieldError]:  # noqa: ANN401, C901
    match shape:
        case shapes.Metadata():
            yield from _check(value, shape.type, path)
        case shapes.UnionType():
            options = [t for t in shape.types if not isinstance(t, shapes.NoneType)]
            if value is None and len(options) < len(shape.types):
                return
            yield from _check(value, options[0], path)
        case shapes.StructType():
            if not isinstance(value, dict):
                yield _expected(path, value, "an object")
                return
            for field in shape.fields:
                where = _join(path, field.encode_name)
                if field.encode_name in value:
                    yield from _check(value[field.encode_name], field.type, where)
                elif field.required:
                    yield FieldError(where, "is required")
        case shapes.VarTupleType() | shapes.ListType():
            if not isinstance(value, list):
                yield _expected(path, value, "a list")
                return
            if shape.min_length is not None and len(value) < shape.min_length:
                yield FieldError(path, f"at least {shape.min_length} item(s), got {len(value)}")
            if shape.max_length is not None and len(value) > shape.max_length:
                yield FieldError(path, f"at most {shape.max_length} item(s), got {len(value)}")
            for i, item in enumerate(value):
                yield from _check(item, shape.item_type, f"{path}[{i}]")
        case shapes.DictType():
            if not isinstance(value, dict):
                yield _expected(path, value, "an object")
                return
            for key, item in value.items():
                yield from _check(item, shape.value_type, _join(path, str(key)))
        case shapes.CustomType() if shape.cls is SecretValue:
            if not isinstance(value, str):
                # The value may be the password, of a wrong type: only its type is named.
                yield FieldError(path, f"expected a string, got {_kind_of(value)}")
        case _:
            yield from _check_scalar(value, shape, path)


def _check_scalar(value: Any, shape: shapes.Type, path: str) -> Iterator[FieldError]:  # noqa: ANN401
    match shape:
        case shapes.IntType():
            if not isinstance(value, int) or isinstance(value, bool):
                yield _expected(path, value, "an integer")
            elif (shape.ge is not None and value < shape.ge) or (
                shape.le is not None and value > shape.le
            ):
                yield FieldError(path, f"{value} is not within {shape.ge} to {shape.le}")
        case shapes.StrType():
            if not isinstance(value, str):
                yield _expected(path, value, "a string")
            elif shape.min_length is not None and len(value) < shape.min_length:
                yield FieldError(path, f"at least {shape.min_length} character(s)")
            elif shape.max_length is not None and len(value) > shape.max_length:
                yield FieldError(path, f"at most {shape.max_length} characters, got {len(value)}")
            elif shape.pattern is not None and not re.search(shape.pattern, value):
                yield FieldError(path, f"{_show(value)} does not match {shape.pattern}")
        case shapes.BoolType():
            if not isinstance(value, bool):
                yield _expected(path, value, "a boolean")
        case shapes.LiteralType():
            if value not in shape.values or isinstance(value, bool):
                allowed = ", ".join(str(v) for v in shape.values)
                yield FieldError(path, f"{_show(value)} is not one of {allowed}")
        case _:
            return


def _unknown(value: Any, shape: shapes.Type, path: str) -> Iterator[FieldError]:  # noqa: ANN401
    match shape:
        case shapes.Metadata():
            yield from _unknown(value, shape.type, path)
        case shapes.UnionType():
            for option in shape.types:
                if not isinstance(option, shapes.NoneType):
                    yield from _unknown(value, option, path)
        case shapes.VarTupleType() | shapes.ListType() if isinstance(value, list):
            for i, item in enumerate(value):
                yield from _unknown(item, shape.item_type, f"{path}[{i}]")
        case shapes.StructType() if isinstance(value, dict):
            known = {field.encode_name: field.type for field in shape.fields}
            for name, item in value.items():
                where = _join(path, str(name))
                if name in known:
                    yield from _unknown(item, known[name], where)
                else:
                    near = difflib.get_close_matches(str(name), known, 1)
                    hint = f"; did you mean {near[0]}?" if near else ""
                    yield FieldError(where, f"unknown field, ignored{hint}")
        case _:
            return
