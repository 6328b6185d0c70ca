"""What programs do not use of libraries is not imported, and can be imported still."""

from __future__ import annotations

import subprocess
import sys

UNUSED = ("greenlet", "http.server", "prometheus_client.exposition", "rich", "wsgiref")


def test_unused_parts_of_structlog_and_prometheus_client_are_not_imported() -> None:
    code = (
        "import sys; from cells.lean_imports import import_lean; import_lean();"
        "from cells.observability.metrics import Metrics; import structlog; structlog.get_logger();"
        f"print([name for name in {UNUSED} if name in sys.modules]);"
        "import rich, prometheus_client.exposition as e; print(e.generate_latest.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "generate_latest"]


def test_a_program_that_has_imported_them_keeps_them() -> None:
    code = (
        "import prometheus_client, structlog; from cells.lean_imports import import_lean;"
        "import_lean(); assert prometheus_client.generate_latest and structlog.get_logger"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
