"""docs/dialects.md shows the code of the test dialects."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).parents[2]


def test_every_block_of_code_is_from_the_test_dialects() -> None:
    page = (ROOT / "docs" / "dialects.md").read_text()
    code = "\n".join(path.read_text() for path in sorted((ROOT / "tests/dialects").rglob("*.py")))
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    # A method of a class is shown by itself.
    shown = [(block.strip("\n"), indent(block, "    ").strip("\n")) for block in blocks]
    assert [block for block, method in shown if block not in code and method not in code] == []


def test_every_file_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "dialects.md").read_text()
    names = set(re.findall(r"`((?:tests|reconcilers|resources|cells|cmd|deploy)/[\w/.]+)`", page))
    example = {"beacon", "NAME"}
    missing = [
        n for n in names if not (ROOT / n).exists() and not example & set(re.split(r"[/.]", n))
    ]
    assert missing == []


def test_kinds_and_dialect_of_the_example_are_as_short_as_the_page_says() -> None:
    page = (ROOT / "docs" / "dialects.md").read_text()
    (limit,) = re.findall(r"kinds and dialect are under (\d+) lines", page)
    files = [ROOT / "tests/dialects/beacon" / name for name in ("kinds.py", "dialect.py")]
    assert sum(len(file.read_text().splitlines()) for file in files) < int(limit)
