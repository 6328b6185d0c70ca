"""Fields of rows by the path that problems name: ``spec.bgp.routers[0].neighbors[1].password``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def value_at(row: msgspec.Struct, path: str) -> Any:  # noqa: ANN401  of any field
    """Return the value at a field path, by the JSON names of the API; None where there is none."""
    value: Any = row
    for name, index in _STEP.findall(path):
        if value is None:
            return None
        if index:
            items = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
            number = int(index) if index.isdecimal() else len(items)
            value = items[number] if number < len(items) else None
        elif isinstance(value, Mapping):
            value = value.get(name)
        else:
            value = getattr(value, _attribute(type(value), name), None)
    return value


def _attribute(kind: type, name: str) -> str:
    """Return the name of the attribute that holds a field of JSON; empty without one."""
    if not issubclass(kind, msgspec.Struct):
        return ""
    fields = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    return fields.get(name, "")
