"""The coverage-guided harness: ``python -m tests.speaker.fuzz.harness octets|sessions [flags]``.

A development tool. It needs atheris, which is no dependency of the project; docs/reliability.md has the
commands. New inputs are stored in a folder of their own, failures in the current directory.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def main(arguments: list[str]) -> None:
    """Fuzz a target from its corpus; further arguments are libFuzzer's."""
    if not arguments or arguments[0] not in ("octets", "sessions"):
        raise SystemExit(__doc__)
    atheris = importlib.import_module("atheris")
    # Only what is imported from here on is watched: nothing above may import the speaker.
    with atheris.instrument_imports(include=["speaker"]):
        targets = importlib.import_module("tests.speaker.fuzz.targets")
    sessions = arguments[0] == "sessions"
    target = targets.run_session if sessions else targets.decode_octets
    found = tempfile.mkdtemp(prefix=f"fuzz-{arguments[0]}-")
    atheris.Setup([sys.argv[0], *arguments[1:], found, str(CORPUS / arguments[0])], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
