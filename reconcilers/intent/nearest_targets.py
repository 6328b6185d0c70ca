"""The prefixes and names of a node's objects that are nearest to an unknown one, as hints. Pure."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

from reconcilers.dialect import Candidate, Target
from reconcilers.model import ObjectRef
from reconcilers.prefixes import shared_bits
from speaker.nlri import Family, prefix_to_text

NEAREST: Final = 3
NEAR_BITS: Final = 8
"""Leading bits that a prefix has to have in common with an unknown one to be named."""
SLICE: Final = 50
"""Prefixes or names that are compared at once."""


def nothing_found(
    node: str, target: Target, candidates: Iterable[Sequence[Candidate]]
) -> Generator[tuple[()], None, str]:
    """Return the sentence for an unknown target, with the nearest prefixes and names as hints."""
    every = itertools.chain.from_iterable(candidates)
    if target.prefix is None:
        relation, near = "is called", (yield from _near_names(every, target))
    else:
        relation, near = "contains", (yield from _near_prefixes(every, *target.prefix))
    nearest = f"; the nearest: {', '.join(near)}" if near else ""
    return f"nothing that node {node} could advertise {relation} {target.text}{nearest}"


def _near_prefixes(
    candidates: Iterator[Candidate], family: Family, nlri: bytes
) -> Generator[tuple[()], None, list[str]]:
    """Return the prefixes with the most leading bits of an unknown one."""
    best: list[tuple[int, bytes]] = []
    of_family = (
        candidate.nlri
        for candidate in candidates
        if candidate.family == family and candidate.nlri is not None
    )
    while some := list(itertools.islice(of_family, SLICE)):
        known = {*best, *((-shared_bits(nlri, near), near) for near in some)}
        best = sorted(item for item in known if -item[0] >= NEAR_BITS)[:NEAREST]
        yield ()
    return [prefix_to_text(family, near) for _, near in best]


def _near_names(
    candidates: Iterator[Candidate], target: Target
) -> Generator[tuple[()], None, list[str]]:
    """Return the objects whose names are similar, of the kind that an unknown one has."""
    of_kind = (
        candidate.object for candidate in candidates if target.kind in (None, candidate.object.kind)
    )
    spelled: dict[str, ObjectRef] = {}
    near: list[str] = []
    wanted = _spelling(target.namespace, target.name)
    while some := list(itertools.islice(of_kind, SLICE)):
        names = {_spelling(target.namespace and ref.namespace, ref.name): ref for ref in some}
        near = difflib.get_close_matches(wanted, {*near, *names}, n=NEAREST)
        spelled |= names
        yield ()
    return [str(spelled[name]) for name in near]


def _spelling(namespace: str | None, name: str | None) -> str:
    return f"{namespace}/{name}" if namespace else f"{name}"
