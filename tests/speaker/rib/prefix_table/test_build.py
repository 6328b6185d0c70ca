"""Compiling the prefix table: what is missing is named, and the package is built without it."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from speaker.rib.prefix_table import build, hatch_hook


class App:
    """Takes the words of the build."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


def _hook(root: Path, app: App) -> hatch_hook.CustomBuildHook:
    return hatch_hook.CustomBuildHook(str(root), {}, None, None, str(root), "wheel", app)  # type: ignore[arg-type]


def test_a_compiler_or_headers_that_are_missing_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(build.NotBuiltError, match="no-such-compiler: No such file"):
        build.build(tmp_path)
    monkeypatch.setenv("CC", "false")
    with pytest.raises(build.NotBuiltError, match="failed"):
        build.build(tmp_path)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(build.NotBuiltError, match="headers"):
        build.build(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_package_is_built_without_it_and_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    app = App()
    data: dict[str, object] = {"force_include": {}}
    hook = _hook(Path(__file__).parents[4], app)
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    (line,) = app.warnings
    assert line.startswith("the prefix table in C is not built: the C compiler no-such-compiler")
    assert data == {"force_include": {}}


def test_a_pure_wheel_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAGGLE_PURE", "1")
    monkeypatch.setenv("CC", "no-such-compiler")
    app = App()
    _hook(Path(__file__).parents[4], app).initialize("standard", {})
    assert not app.warnings
