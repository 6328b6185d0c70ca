"""The packages: a source distribution that is the whole project, a wheel that runs the demo."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.program


def tracked() -> set[str]:
    """Return the files of the project."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a checkout")
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_source_distribution_is_complete(tmp_path: Path) -> None:
    files = tracked()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert files - names == set()


@pytest.fixture(name="installed", scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    prefix = folder / "installed"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # Without bytecode of modules that are not imported here.
    install = ["install", "--no-compile", "--no-deps", "--ignore-installed"]
    install += ["--prefix", str(prefix), str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    (target,) = prefix.glob("lib/python*/site-packages")
    # The interpreter has the checkout installed, which would lend what the wheel lacks.
    checkout = [str(ROOT), str(ROOT / "cmd")]
    (target / "sitecustomize.py").write_text(
        f"import sys\nsys.path[:] = [path for path in sys.path if path not in {checkout}]\n"
    )
    return target


def test_the_wheel_has_the_examples_of_the_demo(installed: Path, tmp_path: Path) -> None:
    code = (
        "import waggle.commands.demo.examples as e; from pathlib import Path;"
        "print(e.__file__); print(*e.find(None, None, Path('copies')), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        str(installed / "waggle" / "commands" / "demo" / "examples.py"),
        "copies/quickstart",
        "copies/router.yaml",
    ]
    copied = {path.name for path in (tmp_path / "copies").rglob("*.yaml")}
    assert {"bgp.yaml", "node.yaml", "services.yaml", "router.yaml"} <= copied


def test_the_demo_of_the_wheel_runs_outside_of_the_checkout(installed: Path) -> None:
    """The program of the wheel, on the examples of the wheel; only their port differs."""
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        folder = Path(name)
        for path in installed.parents[2].glob("share/waggle/examples/*"):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
        port = free_port("127.0.0.2")
        for file in (folder / "router.yaml", folder / "quickstart" / "bgp.yaml"):
            file.write_text(file.read_text().replace("1790", str(port)))
        program = installed.parents[2] / "bin" / "waggle"
        words = ["demo", "--once", "--manifests", "quickstart", "--router", "router.yaml"]
        done = subprocess.run(
            [program, *words, "--socket", "agent.sock"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert {"198.51.100.10/32", "10.244.1.0/24"} <= {
        line.split()[0] for line in done.stdout.splitlines()
    }


def test_the_wheel_has_the_pages(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "waggle", "docs", "router"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (ROOT / "docs" / "router.md").read_text()
