"""Validates a JSON object against a row type, and reports every error and unknown field.

`msgspec` stops at the first error; objects that it rejects are validated here. The rules are the
annotations of the row type, which declare each limit once.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import inspect as shapes

from resources.enumeration import counted
from resources.errors import MAX_LISTED_ERRORS, FieldError, as_written, too_many_wrong_items
from resources.secret_value import SecretValue

LONGEST_NAME: Final = 64
"""Characters of an unknown field's name that are compared with known names."""


@functools.cache
def shape_of(row: type) -> shapes.Type:
    """Return the schema of a row type: its description, cached."""
    return shapes.type_info(row)


def structural_errors(value: Any, row: type) -> list[FieldError]:  # noqa: ANN401
    """Return the violations of a row type's schema: of its types and limits."""
    return list(_check(value, shape_of(row), ""))


def unknown_fields(value: Any, row: type) -> list[FieldError]:  # noqa: ANN401
    """Return an object's fields that the row type's schema lacks, with the most similar one."""
    return _unknown(value, _nested(shape_of(row)), "")


def without_nulls(value: Any) -> Any:  # noqa: ANN401
    """Remove the null fields of a JSON object before its validation: Kubernetes ignores them."""
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
    remedy = ""
    if what == "a string" and isinstance(value, bool | int):
        # In YAML, a value without quotation marks that looks like another type is of that type.
        remedy = f'; write "{_show(value)}"'
    return FieldError(path, f"expected {what}, got {_kind_of(value)}{shown}{remedy}")


Errors: TypeAlias = Iterator[FieldError]


def _check(value: Any, shape: shapes.Type, path: str) -> Errors:  # noqa: ANN401
    """Yield the broken types and limits of a value; a shape without a check allows any value."""
    check = _CHECKS.get(type(shape))
    if check is not None:
        yield from check(value, shape, path)


def _check_metadata(value: Any, shape: shapes.Metadata, path: str) -> Errors:  # noqa: ANN401
    yield from _check(value, shape.type, path)


def _check_union(value: Any, shape: shapes.UnionType, path: str) -> Errors:  # noqa: ANN401
    options = [option for option in shape.types if not isinstance(option, shapes.NoneType)]
    is_null_allowed = len(options) < len(shape.types)
    if value is not None or not is_null_allowed:
        yield from _check(value, options[0], path)


def _check_struct(value: Any, shape: shapes.StructType, path: str) -> Errors:  # noqa: ANN401
    if not isinstance(value, dict):
        # Without the value: it may be a password, where the reference to its Secret belongs.
        yield FieldError(path, f"expected an object, got {_kind_of(value)}")
        return
    for field in shape.fields:
        where = _join(path, field.encode_name)
        if field.encode_name in value:
            yield from _check(value[field.encode_name], field.type, where)
        elif field.required:
            yield FieldError(where, "is required")


def _check_list(
    value: Any,  # noqa: ANN401
    shape: shapes.ListType | shapes.VarTupleType,
    path: str,
) -> Errors:
    if not isinstance(value, list):
        yield _expected(path, value, "a list")
        return
    if shape.min_length is not None and len(value) < shape.min_length:
        yield FieldError(path, f"at least {shape.min_length} item(s), got {len(value)}")
    if shape.max_length is not None and len(value) > shape.max_length:
        yield FieldError(path, f"at most {shape.max_length} item(s), got {len(value)}")
    yield from _each(value, lambda item, where: _check(item, shape.item_type, where), path)


def _each(items: list[Any], errors: Callable[[Any, str], Errors], path: str) -> Errors:
    """Yield the errors of the items of a list, until there are many."""
    count = 0
    for i, item in enumerate(items):
        if count >= MAX_LISTED_ERRORS:
            yield too_many_wrong_items(path, len(items) - i)
            return
        for error in errors(item, f"{path}[{i}]"):
            yield error
            count += 1


def _check_dict(value: Any, shape: shapes.DictType, path: str) -> Errors:  # noqa: ANN401
    if not isinstance(value, dict):
        yield FieldError(path, f"expected an object, got {_kind_of(value)}")
        return
    for key, item in value.items():
        yield from _check(item, shape.value_type, _join(path, as_written(str(key))))


def _check_custom(value: Any, shape: shapes.CustomType, path: str) -> Errors:  # noqa: ANN401
    if shape.cls is SecretValue and not isinstance(value, str):
        # The value may be the password, of a wrong type: only its type is named.
        yield FieldError(path, f"expected a string, got {_kind_of(value)}")


def _check_int(value: Any, shape: shapes.IntType, path: str) -> Errors:  # noqa: ANN401
    if not isinstance(value, int) or isinstance(value, bool):
        yield _expected(path, value, "an integer")
    elif (shape.ge is not None and value < shape.ge) or (shape.le is not None and value > shape.le):
        yield FieldError(path, f"{value} is not within {shape.ge} to {shape.le}")


def _check_str(value: Any, shape: shapes.StrType, path: str) -> Errors:  # noqa: ANN401
    if not isinstance(value, str):
        yield _expected(path, value, "a string")
    elif shape.min_length is not None and len(value) < shape.min_length:
        yield FieldError(path, f"at least {shape.min_length} character(s)")
    elif shape.max_length is not None and len(value) > shape.max_length:
        yield FieldError(path, f"at most {shape.max_length} characters, got {len(value)}")
    elif shape.pattern is not None and not re.search(shape.pattern, value):
        yield FieldError(path, f"{_show(value)} does not match {shape.pattern}")


def _check_bool(value: Any, _: shapes.BoolType, path: str) -> Errors:  # noqa: ANN401
    if not isinstance(value, bool):
        yield _expected(path, value, "a boolean")


def _check_literal(value: Any, shape: shapes.LiteralType, path: str) -> Errors:  # noqa: ANN401
    if value not in shape.values or isinstance(value, bool):
        allowed = ", ".join(str(v) for v in shape.values)
        yield FieldError(path, f"{_show(value)} is not one of {allowed}")


_CHECKS: Final[dict[type[shapes.Type], Callable[[Any, Any, str], Errors]]] = {
    shapes.Metadata: _check_metadata,
    shapes.UnionType: _check_union,
    shapes.StructType: _check_struct,
    shapes.ListType: _check_list,
    shapes.VarTupleType: _check_list,
    shapes.DictType: _check_dict,
    shapes.CustomType: _check_custom,
    shapes.IntType: _check_int,
    shapes.StrType: _check_str,
    shapes.BoolType: _check_bool,
    shapes.LiteralType: _check_literal,
}


class _Nested(NamedTuple):
    """The possible values with fields: objects of some structs, and lists of such values."""

    rows: tuple[type, ...] = ()
    items: tuple[_Nested, ...] = ()


class _Fields(NamedTuple):
    """The fields of a struct."""

    known: Mapping[str, shapes.Type]
    nested: Mapping[str, _Nested]
    """Structs whose values have fields themselves."""


@functools.cache
def _fields_of(row: type) -> _Fields:
    shape = shape_of(row)
    assert isinstance(shape, shapes.StructType)  # noqa: S101  the class of one
    known = {field.encode_name: field.type for field in shape.fields}
    nested = {name: _nested(inner) for name, inner in known.items()}
    return _Fields(known, {name: inner for name, inner in nested.items() if any(inner)})


def _nested(shape: shapes.Type) -> _Nested:
    match shape:
        case shapes.Metadata():
            return _nested(shape.type)
        case shapes.UnionType():
            options = [_nested(option) for option in shape.types]
            return _Nested(
                tuple(row for option in options for row in option.rows),
                tuple(items for option in options for items in option.items),
            )
        case shapes.VarTupleType() | shapes.ListType():
            items = _nested(shape.item_type)
            return _Nested(items=(items,)) if any(items) else _Nested()
        case shapes.StructType():
            return _Nested(rows=(shape.cls,))
        case _:
            return _Nested()


def _unknown(value: Any, shape: _Nested, path: str) -> list[FieldError]:  # noqa: ANN401
    errors: list[FieldError] = []
    if isinstance(value, dict):
        for row in shape.rows:
            known, nested = _fields_of(row)
            for name, item in value.items():
                if name in nested:
                    where = f"{path}.{name}" if path else str(name)
                    errors += _unknown(item, nested[name], where)
            if not value.keys() <= known.keys():
                errors += unknown_names(value, known.keys(), path)
    elif isinstance(value, list):
        for items in shape.items:
            errors += _unknown_of_items(value, items, path)
    return errors


def _unknown_of_items(values: list[Any], shape: _Nested, path: str) -> list[FieldError]:
    """Return the unknown fields of the items of a list, until there are many."""
    errors: list[FieldError] = []
    for i, item in enumerate(values):
        if len(errors) >= MAX_LISTED_ERRORS:
            return [*errors, too_many_wrong_items(path, len(values) - i)]
        errors += _unknown(item, shape, f"{path}[{i}]")
    return errors


def _unknown_field(path: str, name: str, known: Iterable[str]) -> FieldError:
    return FieldError(
        _join(path, as_written(name)), f"unknown field, ignored{did_you_mean(name, known)}"
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message of validation: the most similar known name, or nothing.

    Capital letters and underscores make no difference: `ebgp_multihop` is `ebgpMultihop`.
    """
    names = {other.lower(): other for other in known}
    word = name[:LONGEST_NAME].lower().replace("_", "")
    similar = difflib.get_close_matches(word, names, 1)
    return f"; did you mean {names[similar[0]]}?" if similar else ""


def unknown_names(value: Any, known: AbstractSet[str], path: str) -> list[FieldError]:  # noqa: ANN401
    """List the fields of an object that a schema's names lack; nothing if it is no object."""
    if not isinstance(value, dict):
        return []
    if value.keys() <= known:
        return []
    names = [str(name) for name in value if name not in known]
    errors = [_unknown_field(path, name, known) for name in names[:MAX_LISTED_ERRORS]]
    more = len(names) - MAX_LISTED_ERRORS
    if more > 0:
        errors.append(FieldError(path, f"{counted(more, 'more unknown field')}, ignored"))
    return errors
