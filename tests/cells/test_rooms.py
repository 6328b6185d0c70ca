"""What the command line imports of this room stays cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_opentelemetry_sdk_is_imported_only_where_spans_are_exported() -> None:
    code = "import sys, cells.agent; print([m for m in sys.modules if 'opentelemetry.sdk' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
