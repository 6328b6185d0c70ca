"""The bill of materials has every package of the lock file, with its hashes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_locked_package_is_in_the_bill_with_its_hashes(tmp_path: Path) -> None:
    command = re.search(r"cyclonedx-py (requirements .*?) -o", (ROOT / "Makefile").read_text())
    assert command is not None
    made = tmp_path / "waggle.cdx.json"
    program = Path(sys.executable).parent / "cyclonedx-py"
    subprocess.run(
        [program, *command[1].split(), "-o", made], cwd=ROOT, check=True, capture_output=True
    )
    bill = json.loads(made.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    lock = (ROOT / "requirements.lock").read_text()
    locked = set(re.findall(r"(?m)^([a-z0-9._-]+)==(\S+)", lock))
    found = {(one["name"], one["version"]): one for one in bill["components"]}
    assert found.keys() == locked
    hashes = {
        name: [h["content"] for ref in one["externalReferences"] for h in ref.get("hashes", [])]
        for (name, _), one in found.items()
    }
    assert all(hashes.values()), [name for name, of in hashes.items() if not of]
