"""The example files of the demo: in the current folder, or copies of the installed files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from resources.manifests.files import scan
from waggle import pages

MANIFESTS, ROUTER, SERVICES = "quickstart", "router.yaml", "services.yaml"


class Examples(NamedTuple):
    """The agent's manifests and the router's configuration."""

    manifests: Path
    router: Path

    @property
    def edited(self) -> Path:
        """The manifest to edit first: that of the Services, else any; the directory without one."""
        services = self.manifests / SERVICES
        if services.is_file():
            return services
        files = scan([str(self.manifests)]).files
        return Path(min(files, default=str(self.manifests)))


def installed() -> Path:
    """Return the directory of the examples. Raises FileNotFoundError."""
    return pages.installed("examples", ROUTER, "examples")


def find(manifests: Path | None, router: Path | None, copies: Path) -> Examples:
    """Return the files to use.

    Without paths these are ``examples/`` of the current folder (a checkout); elsewhere copies in
    ``copies``, as the installed files are not there to be edited. A copy that was edited stays.
    """
    folder = Path("examples")
    if not ((folder / MANIFESTS).is_dir() and (folder / ROUTER).is_file()):
        folder = copies
        if manifests is None or router is None:
            _copy(installed(), copies)
    return Examples(manifests or folder / MANIFESTS, router or folder / ROUTER)


def _copy(source: Path, copies: Path) -> None:
    """Copy what is missing, and what was not edited since it was copied: the times are the same."""
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        copy = copies / file.relative_to(source)
        mark = copy.with_name(f".{copy.name}.copied")
        edited = copy.exists() and (
            not mark.exists() or mark.read_text() != str(copy.stat().st_mtime_ns)
        )
        if not edited:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            mark.write_text(str(copy.stat().st_mtime_ns))
