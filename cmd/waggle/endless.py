"""Answers without an end: each item is printed on its own, as it comes."""

from __future__ import annotations

import sys
from typing import Any

from waggle import output


def print_item(item: Any, form: str) -> None:  # noqa: ANN401  JSON
    """Print an item: a line of JSON, a document of YAML, or the text of a template."""
    if form in ("json", "jsonl"):
        sys.stdout.write(output.safe_json(item) + "\n")
    else:
        sys.stdout.write("---\n" * (form == "yaml"))
        output.dump_value(item, form)
    sys.stdout.flush()


def print_error(code: str, message: str, form: str) -> None:
    """Print why an answer ends, as its last item."""
    print_item({"errors": [{"code": code, "message": message}]}, form)
