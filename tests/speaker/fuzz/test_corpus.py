"""The corpus and mutations of it, as plain tests: what the harness once found stays found.

The mutations are chosen by fixed seeds, so that a failure is the same failure again; the harness goes
further (docs/reliability.md).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from speaker.attribute import PathAttributes
from speaker.rib.adj_in import AdjRibIn
from tests.speaker.fuzz.seeds import OCTETS, SESSIONS, entries
from tests.speaker.fuzz.targets import decode_octets, run_session
from tests.speaker.hostile import SEEDS, Arena

FILES = sorted(path for folder in (OCTETS, SESSIONS) for path in folder.iterdir())


def _target(path: Path) -> Callable[[bytes], None]:
    return decode_octets if path.parent == OCTETS else run_session


def test_the_committed_corpus_equals_the_seeds() -> None:
    """``python -m tests.speaker.fuzz.seeds`` writes them."""
    for path, octets in entries().items():
        assert path.read_bytes() == octets, path.name


def test_the_corpus_is_small() -> None:
    assert len(FILES) < 400
    assert sum(path.stat().st_size for path in FILES) < 200_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_replay(path: Path) -> None:
    _target(path)(path.read_bytes())


def mutated(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Change octets, cut, repeat, and join with another input."""
    octets = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(octets)) if octets else 0
        match rng.randrange(6):
            case 0 if octets:
                octets[place] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            case 1 if octets:
                octets[place] ^= 1 << rng.randrange(8)
            case 2:
                del octets[place : place + rng.randint(1, 8)]
            case 3:
                octets[place:place] = rng.randbytes(rng.randint(1, 8))
            case 4:
                octets[place:] = other[rng.randrange(len(other) + 1) :]
            case _:
                octets[place:place] = octets[place : place + rng.randint(1, 40)]
    return bytes(octets)


@pytest.mark.parametrize(
    ("folder", "runs"),
    [(OCTETS, 3000), (SESSIONS, 400)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_mutations(folder: Path, runs: int) -> None:
    rng = random.Random(20260101)  # noqa: S311  a seed, no secret
    inputs = [path.read_bytes() for path in FILES if path.parent == folder]
    target = _target(folder / "any")
    for _ in range(runs):
        data = mutated(rng.choice(inputs), rng.choice(inputs), rng)
        try:
            target(data)
        except Exception as error:
            error.add_note(f"input: {data.hex()}")
            raise


def test_a_target_reports_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fuzzer that cannot fail finds nothing: an error of ours in the engine must get out."""

    def broken(*_: object) -> None:
        raise IndexError("ours")

    monkeypatch.setattr(AdjRibIn, "announce_fields", broken)
    with pytest.raises(AssertionError, match="IndexError"):
        run_session((SESSIONS / "plain-established-everything").read_bytes())
    monkeypatch.setattr(PathAttributes, "__hash__", broken)
    with pytest.raises(IndexError):
        decode_octets((OCTETS / "update").read_bytes())


def test_a_reply_out_of_order_is_detected() -> None:
    arena = Arena().reach("OpenSent")
    arena.written[arena.connection] += SEEDS["update"]
    with pytest.raises(AssertionError, match="before the session was confirmed"):
        arena.check()
    arena = Arena().reach("Established")
    arena.written[arena.connection] += SEEDS["notification"]
    with pytest.raises(AssertionError, match="goes on"):
        arena.check()
