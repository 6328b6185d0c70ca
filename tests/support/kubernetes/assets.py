"""Where the programs of a real API server are; never builds or downloads any.

`KUBEBUILDER_ASSETS`, the ecosystem's convention, else the folder that ``install-apiserver`` made.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.support import builds

_HERE = Path(__file__).parent
PROGRAMS = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True, slots=True)
class Assets:
    """The programs, all in one folder."""

    folder: Path

    @property
    def etcd(self) -> Path:
        """The database."""
        return self.folder / "etcd"

    @property
    def apiserver(self) -> Path:
        """The API server."""
        return self.folder / "kube-apiserver"

    @property
    def kubectl(self) -> Path:
        """The client that people use."""
        return self.folder / "kubectl"


def _folder() -> Path:
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named:
        return Path(named)
    pinned = (_HERE / "go.mod").read_bytes() + (_HERE / "go.sum").read_bytes()
    return builds.cache() / f"kubernetes-{hashlib.sha256(pinned).hexdigest()[:16]}"


def find() -> Assets | str:
    """Return the programs, or one sentence with the reason why there are none."""
    folder = _folder()
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if not missing:
        return Assets(folder)
    if os.environ.get("KUBEBUILDER_ASSETS"):
        return f"KUBEBUILDER_ASSETS has no {', '.join(missing)}"
    return "no API server: tests/support/install-apiserver builds one where Go is installed"
