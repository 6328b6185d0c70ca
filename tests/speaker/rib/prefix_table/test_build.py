"""Compiling the prefix table: what is missing is named, and the package is built without it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from speaker.rib import prefix_table
from speaker.rib.prefix_table import build, dictionary, hatch_hook
from tests.speaker.rib.prefix_table.forms import native


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
    with pytest.raises(build.NotBuiltError, match="failed: exit code 1"):
        build.build(tmp_path)
    monkeypatch.setenv("CC", "cc 'unbalanced")
    with pytest.raises(build.NotBuiltError, match="No closing quotation"):
        build.build(tmp_path)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(build.NotBuiltError, match="headers"):
        build.build(tmp_path)
    assert not list(tmp_path.iterdir())


def test_of_the_words_of_a_compiler_one_line_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(
        "#!/bin/sh\nprintf 'In a file\\nx.c:1: error: no\\n  1 | no\\n' >&2; exit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(build.NotBuiltError) as failed:
        build.build(tmp_path)
    assert str(failed.value) == "the C compiler failed: x.c:1: error: no"


def test_an_empty_cc_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.NotBuiltError, match="the C compiler cc: No such file"):
        build.build(tmp_path)


def test_a_module_of_another_source_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    older = ModuleType("native")
    monkeypatch.delenv("WAGGLE_PURE", raising=False)
    monkeypatch.setitem(sys.modules, "speaker.rib.prefix_table.native", older)
    monkeypatch.setattr(prefix_table, "native", older, raising=False)
    for source in (None, 1):
        monkeypatch.delitem(sys.modules, "speaker.rib.prefix_table.in_c", raising=False)
        monkeypatch.setattr(older, "SOURCE", source, raising=False)
        table, form = prefix_table._choose()
        assert table is dictionary.PrefixTable
        assert form == "Python: the table in C is of another version; install again"


def test_a_module_names_its_source() -> None:
    assert zlib.crc32(build.SOURCE.read_bytes()) == native().SOURCE


def test_both_forms_have_what_type_checkers_see() -> None:
    stub = ast.parse(build.SOURCE.with_name("native.pyi").read_text())
    (table,) = (node for node in stub.body if isinstance(node, ast.ClassDef))
    names = {node.name for node in table.body if isinstance(node, ast.FunctionDef)}
    assert names <= set(dir(dictionary.PrefixTable)) & set(dir(native().PrefixTable))
    if TYPE_CHECKING:
        # No dictionary: mypyc would call the methods of dict. An ignore without need is an error.
        prefix_table.PrefixTable[int]().setdefault(b"", 1)  # type: ignore[attr-defined]


def test_the_package_is_built_without_it_with_the_reason_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WAGGLE_PURE", raising=False)
    monkeypatch.setenv("CC", "no-such-compiler")
    app = App()
    data: dict[str, object] = {"force_include": {}}
    hook = _hook(Path(__file__).parents[4], app)
    hook.initialize("standard", data)
    hook.finalize("standard", data, "")
    (line,) = app.warnings
    assert line.startswith("the prefix table in C is not built: the C compiler no-such-compiler")
    assert data == {"force_include": {}}


def run_for_make(folder: Path, **environment: str) -> str:
    """Do what ``make`` does after the installation; returns its words."""
    run = subprocess.run(
        [sys.executable, str(folder / "build.py"), "--missing"],
        env={**os.environ, "WAGGLE_PURE": "", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not run.stderr
    return run.stdout


def test_make_says_in_one_line_why_the_table_is_not_in_c(tmp_path: Path) -> None:
    for name in ("build.py", "native.c"):
        shutil.copy(build.SOURCE.with_name(name), tmp_path)
    because = "the prefix table in C is not built: the C compiler failed: exit code 1"
    assert run_for_make(tmp_path, CC="false") == f"{because}; the one in Python is used\n"
    assert run_for_make(tmp_path, CC="false", WAGGLE_PURE="1") == ""
    if shutil.which("cc") is None:
        pytest.skip("a C compiler is missing")
    # Of another source, as in a checkout that was updated.
    shutil.copy(native().__file__ or "", tmp_path)
    (tmp_path / "native.c").write_text(build.SOURCE.read_text() + "\n")
    assert run_for_make(tmp_path, CC="false").startswith(because)
    assert Path(run_for_make(tmp_path, CC="cc -O0").strip()).exists()
    assert run_for_make(tmp_path, CC="false") == ""


def test_where_it_can_be_built_it_is_built_and_used() -> None:
    """So the tests of an installation, and of CI, are of the table in C."""
    if os.environ.get("WAGGLE_PURE", "") not in ("", "0"):
        pytest.skip("the table in Python is chosen")
    native()  # skips where it cannot be built
    assert prefix_table.FORM == "C"
    folder = os.environ.get("NATIVE_FOLDER")
    loaded = Path(sys.modules["speaker.rib.prefix_table.native"].__file__ or "")
    if folder:
        assert loaded.parent == Path(folder)  # the module with sanitizers


@pytest.mark.parametrize("version", ["standard", "editable"])
def test_a_wheel_has_the_module_and_an_editable_installation_uses_it_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    native()
    monkeypatch.delenv("WAGGLE_PURE", raising=False)
    monkeypatch.setenv("CC", "cc -O0")
    folder = tmp_path / hatch_hook.FOLDER
    folder.mkdir(parents=True)
    for name in ("build.py", "native.c"):
        shutil.copy(build.SOURCE.with_name(name), folder)
    app = App()
    data: dict[str, Any] = {"force_include": {}}
    hook = _hook(tmp_path, app)
    hook.initialize(version, data)
    assert not app.warnings
    in_place = list(folder.glob("native*.so"))
    if version == "editable":
        assert len(in_place) == 1
        assert data == {"force_include": {}}
    else:
        assert not in_place
        ((source, target),) = data["force_include"].items()
        assert Path(source).exists()
        assert target == f"{hatch_hook.FOLDER}/{Path(source).name}"
        assert (data["pure_python"], data["infer_tag"]) == (False, True)
    hook.finalize(version, data, "")
    assert list(folder.glob("native*.so")) == in_place
    assert version == "editable" or not Path(source).exists()


def test_a_pure_wheel_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAGGLE_PURE", "1")
    monkeypatch.setenv("CC", "no-such-compiler")
    app = App()
    _hook(Path(__file__).parents[4], app).initialize("standard", {})
    assert not app.warnings
