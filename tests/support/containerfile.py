"""Parses a Containerfile line by line, and replays its build without a container engine.

Reads what this project's file uses and refuses the rest. In a replay the stage's absolute folders are
folders of a directory, and its base image is this machine's Python. As a container engine does, a
replay begins with a layer of one before, as long as nothing of it has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDERS = ("/opt", "/src")
"""The absolute folders in which the build works."""
LONG_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name, and what follows."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """What follows, without flags, as words."""
        return [word for word in shlex.split(self.text) if not word.startswith("--")]

    @property
    def source(self) -> str | None:
        """The stage that a COPY takes from; None: the folder of the sources."""
        flags = [word for word in shlex.split(self.text) if word.startswith("--from=")]
        return flags[0].removeprefix("--from=") if flags else None


@dataclass(slots=True)
class Stage:
    """One stage, from its FROM on."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Instruction]:
        """Yield the instructions of a name."""
        return (one for one in self.instructions if one.name == name)


def read(path: Path) -> dict[str, Stage]:
    """Return the stages by name; the last one is called ``final`` where it has none."""
    stages: dict[str, Stage] = {}
    text = path.read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        if name == "FROM":
            _, _, alias = rest.partition(" AS ")
            current = stages.setdefault(alias or "final", Stage(alias or "final"))
        elif name != "ARG":
            known = ("COPY", "RUN", "WORKDIR", "ENV", "USER", "CMD", "LABEL")
            assert name in known, f"declare here what {name} does"
            current.instructions.append(Instruction(name, rest.strip()))
    return stages


def replay(stage: Stage, sources: Path, root: Path, layers: Path | None = None) -> None:
    """Do in a directory what a stage does in its image; raises RuntimeError with what failed.

    ``layers``: where layers are kept. One is: of all instructions before the second COPY.
    """
    copies = [n for n, one in enumerate(stage.instructions) if one.name == "COPY"]
    if layers is None or len(copies) < 2:
        _replay(stage.instructions, sources, root, root)
        return
    first, rest = stage.instructions[: copies[1]], stage.instructions[copies[1] :]
    layer = layers / f"image-{_key(first, sources)}"
    if layer.is_dir():
        _restore(layer, root)
    else:
        _replay(first, sources, root, root)
        _keep(layer, root)
    work = [one.text for one in first if one.name == "WORKDIR"]
    _replay(rest, sources, root, root / work[-1].lstrip("/") if work else root)


def _key(instructions: Sequence[Instruction], sources: Path) -> str:
    """Return what all files of a layer depend on: its instructions, what they copy, and Python."""
    found = hashlib.sha256(f"{sys.version} {Path(sys.executable).resolve()}".encode())
    for one in instructions:
        found.update(f"\n{one.name} {one.text}\n".encode())
        for name in one.words[:-1] if one.name == "COPY" else ():
            found.update((sources / name).read_bytes())
    return found.hexdigest()[:16]


def _keep(layer: Path, root: Path) -> None:
    """Keep a layer; layers that no run has used for long are deleted."""
    layer.parent.mkdir(parents=True, exist_ok=True)
    for other in layer.parent.glob("image-*"):
        if time.time() - other.stat().st_mtime > LONG_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
    # Whole or not at all, also where another run does the same.
    with tempfile.TemporaryDirectory(dir=layer.parent, prefix="image-") as made:
        subprocess.run(["cp", "-a", root, Path(made) / "files"], check=True)
        (Path(made) / "root").write_text(str(root))
        with contextlib.suppress(OSError):
            Path(made).rename(layer)
            Path(made).mkdir()  # for its end


def _restore(layer: Path, root: Path) -> None:
    """Put a layer into another directory: its links and programs lead into this one then."""
    os.utime(layer)
    before = (layer / "root").read_text()
    subprocess.run(["cp", "-a", f"{layer / 'files'}/.", root], check=True)
    for path in root.rglob("*"):
        if path.is_symlink():
            target = str(path.readlink())
            if target.startswith(f"{before}/"):
                path.unlink()
                path.symlink_to(f"{root}{target.removeprefix(before)}")
        elif path.is_file() and (path.parent.name == "bin" or path.suffix == ".cfg"):
            content = path.read_bytes()
            if before.encode() in content:
                path.write_bytes(content.replace(before.encode(), str(root).encode()))


def _replay(instructions: Sequence[Instruction], sources: Path, root: Path, work: Path) -> None:
    programs = root / "usr" / "bin"
    if not programs.is_dir():
        programs.mkdir(parents=True)
        (programs / "python3").symlink_to(Path(sys.executable).resolve())
    kept = ("HOME", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    # Of what is seldom imported no bytecode is needed here.
    environment |= {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment["PATH"] = f"{programs}:/usr/bin:/bin"
    for one in instructions:
        match one.name:
            case "WORKDIR":
                work = root / one.text.lstrip("/")
                work.mkdir(parents=True, exist_ok=True)
            case "COPY":
                *found, target = one.words
                for name in found:
                    _copy(sources / name, work, target, several=len(found) > 1)
            case "RUN":
                _run(_within(one.text, root), work, environment)
            case _:
                raise AssertionError(f"a stage that is replayed has no {one.name}")


def _within(command: str, root: Path) -> str:
    for folder in FOLDERS:
        command = command.replace(f" {folder}/", f" {root}{folder}/")
        if command.startswith(f"{folder}/"):
            command = f"{root}{command}"
    return command


def _copy(source: Path, work: Path, target: str, *, several: bool) -> None:
    assert source.exists(), f"COPY {source.name}: there is no such path"
    place = work / target
    if source.is_dir():
        shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
    elif several or target.endswith(("/", ".")):
        shutil.copy(source, place / source.name)
    else:
        shutil.copy(source, place)


def _run(command: str, work: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-euc", command],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"RUN {command}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
