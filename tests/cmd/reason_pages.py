"""docs/reasons.md, and the tables of reasons in docs/cli.md, as the catalog has them.

Written by ``python -m tests.cmd.reason_pages`` after a change of `waggle.reasons`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from waggle.reasons import TOPICS, all_reasons, table

ROOT: Final = Path(__file__).parents[2]
REASONS: Final = ROOT / "docs" / "reasons.md"
CLI: Final = ROOT / "docs" / "cli.md"
HEAD: Final = """\
# Reasons

Every word that a command, a condition, an Event or an answer of the API gives as a reason.
`waggle errors CODE` prints its meaning and its remedy on the command line.
"""
MARKED: Final = re.compile(r"<!-- reasons: (\w+) -->\n(?:\|.*\n)*")


def page() -> str:
    """Return docs/reasons.md."""
    parts = [
        f"\n## {heading}\n\n" + "\n".join(table(name)) + "\n" for name, heading in TOPICS.items()
    ]
    return HEAD + "".join(parts)


def with_tables(text: str) -> str:
    """Return a page with the tables behind its marks as the catalog has them."""
    return MARKED.sub(lambda mark: f"<!-- reasons: {mark[1]} -->\n{_short(mark[1])}", text)


def _short(topic: str) -> str:
    rows = (f"| `{r.word}` | {r.meaning} |" for r in all_reasons() if r.topic == topic)
    return "".join(f"{line}\n" for line in ("| reason | |", "| --- | --- |", *rows))


def main() -> int:
    """Write the pages; returns the exit status."""
    REASONS.write_text(page())
    CLI.write_text(with_tables(CLI.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
