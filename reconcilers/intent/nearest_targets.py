"""The prefixes and names of a node's objects that are nearest to an unknown one, as hints. Pure."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

from reconcilers.dialect import Candidate, Target
from reconcilers.model import ObjectRef
from reconcilers.prefixes import shared_bits
from speaker.nlri import Family, prefix_to_text, prefix_to_wire

NEAREST: Final = 3
NEAR_BITS: Final = 8
"""Leading bits that a prefix has to have in common with an unknown one to be named."""
SLICE: Final = 50
"""Prefixes or names that are compared at once."""
_NOTHING: Final = "nothing that "
_HINT: Final = "; the nearest: "


def nothing_found(
    node: str, target: Target, candidates: Iterable[Sequence[Candidate]]
) -> Generator[tuple[()], None, str]:
    """Return the sentence for an unknown target, with the nearest prefixes and names as hints."""
    every = itertools.chain.from_iterable(candidates)
    if target.prefix is None:
        near = yield from _near_names(every, target)
    else:
        near = yield from _near_prefixes(every, *target.prefix)
    return f"{_NOTHING}node {node}{_unknown(target)}{_hint(near)}"


def nothing_on_nodes(sentences: Iterable[str], target: Target) -> str | None:
    """Return one sentence in place of what `nothing_found` returned on several nodes.

    Its hints are the nearest of all theirs. None where a sentence is about something else.
    """
    known: set[str] = set()
    for sentence in sentences:
        nothing, _, near = sentence.partition(_HINT)
        if not (nothing.startswith(_NOTHING) and nothing.endswith(_unknown(target))):
            return None
        known.update(near.split(", ") if near else ())
    if target.prefix is None:
        spelled: dict[str, str] = {}
        for text in sorted(known):
            _, *namespace, name = text.split("/")
            spelled[_spelling(target.namespace and "".join(namespace), name)] = text
        wanted = _spelling(target.namespace, target.name)
        nearest = [spelled[name] for name in difflib.get_close_matches(wanted, spelled, n=NEAREST)]
    else:
        family, nlri = target.prefix
        wires = [prefix_to_wire(text)[1] for text in known]
        ranked = sorted((-shared_bits(nlri, wire), wire) for wire in wires)
        nearest = [prefix_to_text(family, wire) for _, wire in ranked[:NEAREST]]
    return f"{_NOTHING}any node{_unknown(target)}{_hint(nearest)}"


def _unknown(target: Target) -> str:
    relation = "is called" if target.prefix is None else "contains"
    return f" could advertise {relation} {target.text}"


def _hint(near: Sequence[str]) -> str:
    return f"{_HINT}{', '.join(near)}" if near else ""


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
