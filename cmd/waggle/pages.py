"""The pages of the documentation, and the examples: where they are."""

from __future__ import annotations

import errno
import importlib.metadata
from pathlib import Path
from typing import Final

FIRST_PAGE: Final = "install.md"
"""A page by which the folder of a wheel is found."""


def folder() -> Path:
    """Return the folder of the pages. Raises FileNotFoundError."""
    return installed("docs", FIRST_PAGE, "pages")


def installed(name: str, first: str, what: str) -> Path:
    """Return the folder with this file in it: of a checkout, or of a wheel.

    Raises FileNotFoundError.
    """
    checkout = Path(__file__).resolve().parents[2] / name
    if (checkout / first).is_file():
        return checkout
    for file in importlib.metadata.files("waggle-bgp") or ():
        if file.parts[-4:] == ("share", "waggle", name, first):
            return Path(str(file.locate())).resolve().parent
    raise FileNotFoundError(errno.ENOENT, f"the {what} are not installed", f"share/waggle/{name}")


def names(directory: Path) -> tuple[str, ...]:
    """Return the names of the pages: paths without the suffix."""
    paths = (path.relative_to(directory) for path in directory.rglob("*.md"))
    return tuple(sorted(path.with_suffix("").as_posix() for path in paths))
