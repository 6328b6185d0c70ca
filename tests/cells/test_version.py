"""The version of the program: that of the installed distribution."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cells.version import version


@pytest.fixture(autouse=True)
def _not_remembered() -> Iterator[None]:
    version.cache_clear()
    yield
    version.cache_clear()


def test_it_is_that_of_the_installed_distribution() -> None:
    assert version() == importlib.metadata.version("waggle-bgp")


def test_a_place_that_cannot_be_searched_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["x" * 5000, *sys.path])
    assert version() == importlib.metadata.version("waggle-bgp")


def test_a_distribution_of_another_layout_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "waggle_bgp.egg-info"
    place.mkdir()
    (place / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: waggle-bgp\nVersion: 1.2.3\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert version() == "1.2.3"
