"""From a row type to the structural OpenAPI schema of a CustomResourceDefinition.

Types, limits, defaults and enumerations are the row type's own annotations, so that there is one
place where each is written. Pure: the same type always gives the same schema.

Source: Kubernetes API, apiextensions.k8s.io/v1, JSONSchemaProps; a structural schema names a type
everywhere; an absent part that has defaults within is filled in with them.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect as shapes

from resources.crds.schema_markers import VERSIONS
from resources.meta import Struct
from resources.schema import shape_of
from resources.secret_value import SecretValue

Schema = dict[str, Any]


class UnschematicTypeError(TypeError):
    """A row type has a member that no structural schema describes; a mistake in the row type."""

    def __init__(self, path: str, shape: object) -> None:
        super().__init__(f"{path}: {shape!r} has no structural schema")


def schema_of(row: type, version: str) -> Schema:
    """Make the schema of a struct as one version of the API has it."""
    return _schema(shape_of(row), version, row.__name__)


def _schema(shape: shapes.Type, version: str, path: str) -> Schema:
    match shape:
        case shapes.Metadata():
            return _schema(shape.type, version, path) | (shape.extra_json_schema or {})
        case shapes.UnionType():
            options = [t for t in shape.types if not isinstance(t, shapes.NoneType)]
            if len(options) == 1:
                return _schema(options[0], version, path)
        case shapes.StructType():
            return _struct(shape, version, path)
        case shapes.VarTupleType() | shapes.ListType():
            items = _schema(shape.item_type, version, f"{path}[]")
            limits = {"minItems": shape.min_length, "maxItems": shape.max_length}
            return {"type": "array", "items": items} | _given(limits)
        case shapes.DictType(key_type=shapes.StrType()):
            values = _schema(shape.value_type, version, f"{path}{{}}")
            return {"type": "object", "additionalProperties": values}
        case shapes.IntType():
            fits = shape.le is not None and shape.le < 1 << 31
            limits = {"minimum": shape.ge, "maximum": shape.le}
            return {"type": "integer", "format": "int32" if fits else "int64"} | _given(limits)
        case shapes.StrType():
            limits = {"minLength": shape.min_length, "maxLength": shape.max_length}
            return {"type": "string"} | _given(limits) | _given({"pattern": shape.pattern})
        case shapes.BoolType():
            return {"type": "boolean"}
        case shapes.CustomType() if shape.cls is SecretValue:
            return {"type": "string", "format": "password"}
        case shapes.LiteralType() if all(isinstance(value, str) for value in shape.values):
            return {"type": "string", "enum": list(shape.values)}
    raise UnschematicTypeError(path, shape)


def _struct(shape: shapes.StructType, version: str, path: str) -> Schema:
    properties: Schema = {}
    required = []
    for field in shape.fields:
        if not _in_version(field.type, version):
            continue
        name = field.encode_name
        part = _schema(field.type, version, f"{path}.{name}")
        if isinstance(field.default, str | int | bool) and field.default != "":
            part["default"] = field.default
        elif filling := _filling(field, part):
            # So that people see what counts. Spelt out, as rules are held against it as it is here.
            part["default"] = filling
        properties[name] = part
        if field.required:
            required.append(name)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if issubclass(shape.cls, Struct) and shape.cls.cel:
        schema["x-kubernetes-validations"] = [
            {"rule": rule.cel, "message": rule.message}
            | ({"fieldPath": f".{rule.field}"} if rule.field else {})
            for rule in shape.cls.cel
        ]
    return schema


def _filling(field: shapes.Field, part: Schema) -> Schema:
    """Return the defaults within a field that, when it is absent, is the struct of its defaults."""
    factory = field.default_factory
    if not (isinstance(factory, type) and issubclass(factory, Struct)):
        return {}
    inner: Schema = part["properties"]
    return {name: schema["default"] for name, schema in inner.items() if "default" in schema}


def _in_version(shape: shapes.Type, version: str) -> bool:
    only = (shape.extra or {}).get(VERSIONS) if isinstance(shape, shapes.Metadata) else None
    return only is None or version in only


def _given(limits: dict[str, Any]) -> Schema:
    return {name: value for name, value in limits.items() if value is not None}
