"""The annotation ``waggle.dev/redistribute``: tables of the kernel, with the permitted prefixes. Pure.

FRR-k8s has no field for it (frr-k8s#469); its users write raw configuration, of which
`reconcilers.frrk8s.raw_redistribution` understands a part.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from reconcilers.frrk8s.field_values import vrf_name
from reconcilers.frrk8s.prefix_rules import InvalidSelector, prefix_rule
from reconcilers.redistribution import Redistribution
from resources.errors import INVALID_JSON, FieldError, first_errors
from resources.frrk8s.neighbor import PrefixSelector
from resources.host import BGP_PROTOCOL, KernelTable
from resources.meta import Struct
from resources.schema import structural_errors, unknown_fields

ANNOTATION: Final = "waggle.dev/redistribute"
FIELD: Final = f"metadata.annotations[{ANNOTATION}]"
MAX_CHARACTERS: Final = 64 * 1024
LOCAL_TABLE: Final = 255
"""The kernel's own: addresses of interfaces."""


class _Entry(Struct, frozen=True):
    """A table of the kernel; its schema is that of docs/kernel.md."""

    table: Annotated[int, Meta(ge=1, le=4294967295)]
    protocol: Annotated[int, Meta(ge=0, le=255)]
    prefixes: Annotated[tuple[PrefixSelector, ...], Meta(min_length=1)]
    vrf: str = ""


class ParsedAnnotation(NamedTuple):
    """The parsed annotation of an object."""

    redistributions: tuple[tuple[str, Redistribution, str], ...] = ()
    """Each with its VRF, and the path of the VRF."""
    errors: tuple[FieldError, ...] = ()


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> ParsedAnnotation:
    """Parse a value of the annotation ``waggle.dev/redistribute``; with an error it has no effect."""
    if len(text) > MAX_CHARACTERS:
        reason = f"at most {MAX_CHARACTERS} characters, got {len(text)}"
        return ParsedAnnotation(errors=(FieldError(FIELD, reason),))
    try:
        value = msgspec.json.decode(text)
    except INVALID_JSON as error:
        reason = f"it is no JSON: {error}"
        return ParsedAnnotation(errors=(FieldError(FIELD, reason),))
    errors = first_errors(_structural(value))
    if errors:
        return ParsedAnnotation(errors=errors)
    entries: list[tuple[str, Redistribution, str]] = []
    wrong: list[FieldError] = []
    for i, entry in enumerate(msgspec.convert(value, list[_Entry])):
        path = f"{FIELD}[{i}]"
        if entry.table == LOCAL_TABLE:
            text = "255 is the kernel's table of local addresses"
            wrong.append(FieldError(f"{path}.table", text))
        if entry.protocol == BGP_PROTOCOL:
            text = f"{BGP_PROTOCOL} is BGP: received routes are not redistributed"
            wrong.append(FieldError(f"{path}.protocol", text))
        rules = []
        for j, selector in enumerate(entry.prefixes):
            try:
                rules.append(prefix_rule(selector, None))
            except InvalidSelector as error:
                wrong.append(FieldError(f"{path}.prefixes[{j}].{error.field}", str(error)))
        redistribution = Redistribution(KernelTable(entry.table, entry.protocol), tuple(rules))
        entries.append((vrf_name(entry.vrf), redistribution, f"{path}.vrf"))
    return (
        ParsedAnnotation(errors=first_errors(wrong)) if wrong else ParsedAnnotation(tuple(entries))
    )


def _structural(value: Any) -> Iterator[FieldError]:  # noqa: ANN401  JSON
    """Yield what the schema refuses; unknown fields are refused, too."""
    errors = structural_errors(value, list[_Entry]) or unknown_fields(value, list[_Entry])
    for error in errors:
        message = error.message.replace("unknown field, ignored", "unknown field")
        dot = "" if error.path[:1] in ("", "[") else "."
        yield FieldError(f"{FIELD}{dot}{error.path}", message)
