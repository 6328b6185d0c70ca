"""The build hook of the package: the prefix table in C, where it can be compiled (pyproject.toml)."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "speaker/rib/prefix_table"


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the module to a wheel, which is one of a platform then, and to an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile it; without a compiler or headers print one line, and go on."""
        if os.environ.get("WAGGLE_PURE", "") not in ("", "0"):
            return
        folder = Path(self.root) / FOLDER
        # By its path: the package is not installed yet.
        spec = importlib.util.spec_from_file_location("prefix_table_build", folder / "build.py")
        assert spec is not None and spec.loader is not None  # noqa: PT018, S101  it is a file
        build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build)
        self._folder = tempfile.TemporaryDirectory(prefix="waggle-build-")
        try:
            module = build.build(folder if version == "editable" else Path(self._folder.name))
        except build.NotBuiltError as error:
            self.app.display_warning(f"the prefix table in C is not built: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(module)] = f"{FOLDER}/{module.name}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled for a wheel."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
