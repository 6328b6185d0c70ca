"""Which tests run once more with prefix tables in Python: all that can notice which table there is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.table_tests import FORMS, TABLE, files

ROOT = Path(__file__).parents[1]
ROOM = Path("tests/speaker")


def test_tests_of_the_table_of_its_users_and_of_the_users_users_run_once_more() -> None:
    rooms = {path.parent for path in files()}
    assert {ROOM / "rib/prefix_table", ROOM / "rib", ROOM / "engine", ROOM / "server"} <= rooms
    assert all((ROOT / path).is_file() for path in files())


def test_no_other_test_has_a_table_but_tests_of_both_forms() -> None:
    others = {p.relative_to(ROOT) for p in (ROOT / ROOM).rglob("test_*.py")} - {*files()}
    both = {path for path in others if f"from {FORMS} import" in (ROOT / path).read_text()}
    assert {path.parent for path in both} == {ROOM / "rib/prefix_table"}
    others -= both
    names = sorted(".".join(path.with_suffix("").parts) for path in others)
    assert [name for name in names if name.startswith("tests.speaker.bfd.")]
    program = (
        "import importlib, json, sys\n"
        "for name in json.loads(sys.argv[1]): importlib.import_module(name)\n"
        f"print({TABLE!r} in sys.modules)"
    )
    command = [sys.executable, "-c", program, json.dumps(names)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
