"""The image: the contents of its Containerfile, and the start of the programs that it builds.

Without a container engine: the lines of the build stage run one by one in a directory.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import builds, containerfile
from tests.support.containerfile import Stage
from tests.support.daemon import Daemon
from tests.support.wait import eventually

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def replayed(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that needs the replay: all by one worker, so that there is one."""
    for mark in (pytest.mark.program, pytest.mark.xdist_group("image"), pytest.mark.timeout(600)):
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    """The stages of the file."""
    return containerfile.read(ROOT / "Containerfile")


@pytest.fixture(scope="module")
def image(stages: dict[str, Stage]) -> Iterator[Path]:
    """The folder in which the build stage was replayed."""
    with tempfile.TemporaryDirectory(prefix="waggle-image-", dir=_quick_place()) as name:
        containerfile.replay(stages["build"], ROOT, Path(name), builds.cache())
        # Nothing of the sources is in the last stage.
        shutil.rmtree(Path(name) / "src")
        yield Path(name)


def _quick_place() -> Path | None:
    """Return a file system in memory with room for ten thousand files; None: the usual place."""
    shared = Path("/dev/shm")  # noqa: S108
    usable = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 1 << 30
    return shared if usable else None


def test_all_copied_files_exist_and_are_not_ignored(stages: dict[str, Stage]) -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = set()
    for one in stages["build"].all("COPY"):
        copied |= set(one.words[:-1])
    assert "*" in ignored
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_every_package_is_copied(stages: dict[str, Stage]) -> None:
    copied = {word for one in stages["build"].all("COPY") for word in one.words[:-1]}
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {name.partition("/")[0] for name in wheel} <= copied
    assert PYPROJECT["project"]["readme"] in copied
    assert set(PYPROJECT["project"]["license-files"]) <= copied


def test_the_last_stage_has_the_programs_and_an_unprivileged_user(stages: dict[str, Stage]) -> None:
    final = stages["final"]
    (copy,) = final.all("COPY")
    assert (copy.source, copy.words) == ("build", ["/opt/waggle", "/opt/waggle"])
    (user,) = final.all("USER")
    # A number: of a name the kubelet cannot verify that it is not root.
    assert [int(part) > 0 for part in user.text.split(":")] == [True, True]
    assert not list(final.all("RUN"))


@replayed
def test_the_image_has_the_programs_that_the_pods_start(
    image: Path, stages: dict[str, Stage]
) -> None:
    programs = image / "opt" / "waggle" / "bin"
    (command,) = stages["final"].all("CMD")
    assert command.text == '["waggle-agent"]'
    version = PYPROJECT["project"]["version"]
    for name in PYPROJECT["project"]["scripts"]:
        # The plugin of kubectl is the same program.
        program = "waggle" if name == "kubectl-waggle" else name
        assert _run(image, programs / name, "--version").startswith(f"{program} {version}")
    # What it was built with has gone, and nothing else: every program finds what it imports.
    installed = _run(
        image,
        programs / "python",
        "-c",
        "import importlib.metadata as m; print(*(d.name for d in m.distributions()))",
    ).split()
    assert not {"hatchling", "editables", "pip", "setuptools", "wheel"} & set(installed)
    _run(image, programs / "python", "-c", "import pyroute2")
    code = "from resources.kubernetes import client_library; client_library.load()"
    _run(image, programs / "python", "-c", code)
    library = next((image / "opt/waggle/lib").glob("python3*/site-packages/kubernetes_asyncio"))
    assert sum(path.stat().st_size for path in library.rglob("*") if path.is_file()) < 2_000_000
    assert "CustomResourceDefinition" in _run(image, programs / "waggle", "crds")
    arguments = (
        "render",
        "-f",
        ROOT / "examples" / "quickstart",
        "--node",
        "node-1",
        "-o",
        "table",
    )
    assert "198.51.100.10/32" in _run(image, programs / "waggle", *arguments)


@replayed
def test_files_are_readable_by_all_and_writable_by_root_only(image: Path) -> None:
    for path in (image / "opt" / "waggle").rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            continue
        wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
        assert mode & wanted == wanted, f"{path} cannot be read by another user"
        assert not mode & stat.S_IWOTH, f"{path} can be written by anybody"


@replayed
def test_the_agent_of_the_image_runs(image: Path, tmp_path: Path) -> None:
    program = image / "opt" / "waggle" / "bin" / "waggle-agent"
    socket = tmp_path / "api"
    arguments: list[str | Path] = [
        "--manifests",
        ROOT / "examples" / "quickstart",
        "--node-name",
        "node-1",
    ]
    agent = Daemon(
        "waggle-agent", [program, *arguments, "--api-socket", socket], log=tmp_path / "log"
    )
    agent.start()
    try:
        eventually(lambda: _check_session(image, socket), context=agent.tail)
    finally:
        assert agent.stop() == 0


def _check_session(image: Path, socket: Path) -> None:
    assert socket.exists()
    program = image / "opt" / "waggle" / "bin" / "waggle"
    assert "router" in _run(image, program, "peers", "--socket", socket)


def _run(image: Path, *command: str | Path) -> str:
    """Run a program of the image with nothing of this project around it."""
    done = subprocess.run(
        command,
        cwd="/",
        env={"PATH": f"{image / 'opt/waggle/bin'}:{os.defpath}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout
