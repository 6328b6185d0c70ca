"""Parses a Containerfile line by line, and replays its build without a container engine.

Reads what this project's file uses and refuses the rest. In a replay the stage's absolute folders are
folders of a directory, and its base image is this machine's Python.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDERS = ("/opt", "/src")
"""The absolute folders in which the build works."""


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


def replay(stage: Stage, sources: Path, root: Path) -> None:
    """Do in a directory what a stage does in its image; raises RuntimeError with what failed."""
    programs = root / "usr" / "bin"
    programs.mkdir(parents=True)
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    kept = ("HOME", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    # Of what is seldom imported no bytecode is needed here.
    environment |= {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment["PATH"] = f"{programs}:/usr/bin:/bin"
    work = root
    for one in stage.instructions:
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
