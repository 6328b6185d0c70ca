"""The files of the demo: of the folder, or copies of the installed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from waggle.commands.demo.examples import find, installed


def test_an_edited_copy_stays_and_a_new_version_replaces_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copies = tmp_path / "copies"
    find(None, None, copies)
    services, node = (copies / "quickstart" / name for name in ("services.yaml", "node.yaml"))
    edited = services.read_text().replace("10.", "11.")
    services.write_text(edited)
    new = tmp_path / "installed"
    for file in installed().rglob("*.yaml"):
        there = new / file.relative_to(installed())
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text("# new\n" + file.read_text())
    monkeypatch.setattr("waggle.commands.demo.examples.installed", lambda: new)
    found = find(None, None, copies)
    assert found.manifests == copies / "quickstart"
    assert services.read_text() == edited
    assert node.read_text().startswith("# new\n")
