"""The helm that go.mod pins: where `install-helm` left it, and how the tests run it; builds nothing."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.generate import KUBE_VERSION
from tests.support import builds
from tests.support.documents import documents

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Helm:
    """The program, and what it makes of a chart."""

    program: Path
    chart: Path

    def template(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        namespace: str = "waggle-system",
        version: str = KUBE_VERSION,
    ) -> list[dict[str, Any]]:
        """Render the chart as release `waggle`; raises `ValueError` with helm's error."""
        return documents(self.text(values, namespace=namespace, version=version))

    def text(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        namespace: str = "waggle-system",
        version: str = KUBE_VERSION,
    ) -> str:
        """Render, as YAML; the same again is not rendered twice."""
        where = (f"--namespace={namespace}", f"--kube-version={version}")
        return self._rendered(where, yaml.safe_dump(dict(values or {})))

    @functools.cache  # noqa: B019  there is one for all tests, of a chart that stays as it is
    def _rendered(self, where: tuple[str, ...], values: str) -> str:
        return self.run("template", "waggle", str(self.chart), *where, "--values=-", text=values)

    def lint(self, values: Mapping[str, Any] | None = None) -> str:
        """Have helm look for mistakes, strictly; raises ValueError with what it finds."""
        text = yaml.safe_dump(dict(values or {}))
        version = f"--kube-version={KUBE_VERSION}"
        return self.run("lint", "--strict", version, str(self.chart), "--values=-", text=text)

    def run(self, *arguments: str, text: str = "") -> str:
        """Run helm; gives its output."""
        done = subprocess.run(
            [self.program, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            # Nothing of the user who runs the tests: no plugins, repositories or cluster. It ends
            # before its garbage would be much.
            env={"HOME": "/nonexistent", "PATH": "", "GOGC": "off"},
        )
        if done.returncode != 0:
            raise ValueError(f"{done.stderr.strip()}\n{done.stdout.strip()}")
        return done.stdout


def find() -> Path | str:
    """Return the program, or one sentence with the reason why there is none."""
    pinned = (_HERE / "go.mod").read_bytes() + (_HERE / "go.sum").read_bytes()
    found = builds.cache() / f"helm-{hashlib.sha256(pinned).hexdigest()[:16]}"
    if os.access(found, os.X_OK):
        return found
    return "no helm: tests/support/install-helm builds it where Go is installed"
