"""A program for a mount namespace of its own: a source whose directory is unmounted while it runs.

It prints a line for each step that came about, and ends with status 0 after the last one.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from resources.manifests.source import ManifestsSource
from tests.resources.manifests.directory import MessageCounts, node
from tests.support.kinds import KINDS
from tests.support.wait import until


def mount(directory: Path, label: str) -> None:
    """Mount a file system with two manifests."""
    subprocess.run(["mount", "-t", "tmpfs", "none", directory], check=True)
    for name in "ab":
        (directory / f"{name}.yaml").write_text(node(name, label))


def unmount(directory: Path) -> None:
    """Detach the file system from the directory, which is empty then."""
    subprocess.run(["umount", "--lazy", directory], check=True)
    assert list(directory.iterdir()) == []


def say(step: str) -> None:
    """Print a step."""
    sys.stdout.write(f"{step}\n")
    sys.stdout.flush()


async def main(directory: Path) -> None:
    """Run the source through the steps."""
    mount(directory, "first")
    source = ManifestsSource([directory], KINDS, hold=3600.0)
    observed = MessageCounts(source)
    running = asyncio.create_task(source.run())
    await until(lambda: observed.labels == dict.fromkeys("ab", "first"))
    say("read")

    await asyncio.to_thread(unmount, directory)
    await until(lambda: bool(observed.problems))
    assert observed.labels == dict.fromkeys("ab", "first")
    say(f"kept: {observed.problems[0]}")

    mount(directory, "second")
    await until(lambda: observed.labels == dict.fromkeys("ab", "second"))
    await until(lambda: not observed.problems)
    say("followed")

    # The new file system is watched as the first one was.
    (directory / "b.yaml").unlink()
    (directory / "c.yaml").write_text(node("c", "third"))
    await until(lambda: observed.labels == {"a": "second", "c": "third"})
    assert not running.done()
    running.cancel()
    say("watched")


asyncio.run(main(Path(sys.argv[1])))
