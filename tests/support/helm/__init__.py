"""The helm that go.mod pins: where `install-helm` left it, and how the tests run it; builds nothing."""

from __future__ import annotations

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
        return [
            document
            for document in yaml.safe_load_all(
                self.text(values, namespace=namespace, version=version)
            )
            if document is not None
        ]

    def text(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        namespace: str = "waggle-system",
        version: str = KUBE_VERSION,
    ) -> str:
        """Render, as YAML."""
        where = (f"--namespace={namespace}", f"--kube-version={version}")
        given = yaml.safe_dump(dict(values or {}))
        return self.run("template", "waggle", str(self.chart), *where, "--values=-", text=given)

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
            # Nothing of the user who runs the tests: no plugins, repositories or cluster.
            env={"HOME": "/nonexistent", "PATH": ""},
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
