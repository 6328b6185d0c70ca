"""The members of all answers, a line each, as tests/cmd/schema_members.txt has them.

Written by ``python -m tests.cmd.schema_members``: a change of a released line is a break of users.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from waggle.commands.schema.schemas import item_types, schema

FILE: Final = Path(__file__).parent / "schema_members.txt"


def lines() -> list[str]:
    """Return the members of each kind: path, type, and whether they are always there."""
    return [f"{kind}{line}" for kind in item_types() for line in _members(schema(kind))]


def _members(whole: dict[str, Any]) -> Iterator[str]:
    def walk(value: dict[str, Any], path: str, seen: tuple[str, ...]) -> Iterator[str]:
        if "$ref" in value:
            name = value["$ref"].rpartition("/")[2]
            if name not in seen:
                yield from walk(whole["$defs"][name], path, (*seen, name))
        for part in value.get("anyOf", ()):
            yield from walk(part, path, seen)
        if isinstance(value.get("items"), dict):
            yield from walk(value["items"], f"{path}[]", seen)
        for name, member in value.get("properties", {}).items():
            kind = member.get("type", "object" if "$ref" in member else "any")
            always = " always" if name in value.get("required", ()) else ""
            yield f"{path}.{name} {kind}{always}"
            yield from walk(member, f"{path}.{name}", seen)

    yield from walk(whole, "", ())


def main() -> int:
    """Write the file; returns the exit status."""
    FILE.write_text("".join(f"{line}\n" for line in lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
