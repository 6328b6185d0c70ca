"""The tests of the speaker that use a prefix table: ``make test-pure`` runs them with Python's.

They are the modules whose imports lead to one, but for the tests of the tables themselves, which have
both forms. All others would do the same once more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import grimp

TABLE: Final = "speaker.rib.prefix_table"
FORMS: Final = "tests.speaker.rib.prefix_table.forms"


def files() -> list[Path]:
    """Return the modules with tests, in order, from the root of the checkout."""
    graph = grimp.build_graph("speaker", "tests", cache_dir=None)
    using: set[str] = set()
    new = {TABLE}
    while new:
        using |= new
        # The import of a module is an import of the packages that it is in.
        imported = {inner for name in new for inner in graph.find_descendants(name)} | new
        new = {
            importer
            for name in imported
            for importer in graph.find_modules_that_directly_import(name)
        } - using
    using -= graph.find_modules_that_directly_import(FORMS)
    rooms = [name.split(".") for name in using if name.startswith("tests.speaker.")]
    return sorted(
        Path(*parts).with_suffix(".py") for parts in rooms if parts[-1].startswith("test_")
    )


if __name__ == "__main__":
    print(*files())  # noqa: T201  the answer
