"""Validates MetalLB's objects of one node: each object, references and conflicts. Pure.

Source: MetalLB internal/config/config.go and validation.go. Every finding is independent of the order
of the objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from reconcilers.frrk8s.passwords import password_of
from reconcilers.metallb.conflicts import conflicts
from reconcilers.metallb.objects import Objects, problem_of_objects
from reconcilers.model import ObjectRef, Problem, ref_to
from reconcilers.sliced_work import Pieces, Slices, finish
from resources.core import Secret
from resources.errors import FieldError, as_written
from resources.frrk8s.communities import UnknownNotationError, parse_community
from resources.meta import ObjectKey
from resources.metallb.bgppeer import BGPPeer, vrf_of
from resources.metallb.kinds import (
    BGP_ADVERTISEMENT,
    BGP_PEER,
)
from resources.metallb.objects import MetalLBObject
from resources.without_wrong_fields import unrelated

PIECES_OF_STEP: Final = 10
"""Pieces of a slice that one step of the search for conflicts counts for."""
Secrets = Callable[[ObjectKey], Secret | None] | None
"""Namespace and name to a Secret, or None; None in a program that reads no Secret: the operator."""


def findings(objects: Objects, secrets: Secrets, namespace: str) -> list[Problem]:
    """Return all findings about MetalLB's objects at one go; see `finding_slices`."""
    return finish(finding_slices(objects, secrets, namespace, Pieces()))


def finding_slices(
    objects: Objects, secrets: Secrets, namespace: str, pieces: Pieces
) -> Slices[list[Problem]]:
    """Return all findings about MetalLB's objects; an invalid one is not compared with others.

    What it refers to is checked all the same, so that its problems are found at once.
    """
    invalid = {ref: row for ref, row in objects.refs() if row.errors}
    problems = [
        problem_of_objects((ref,), error.path, _naming_neighbor(row, error.message), "invalid")
        for ref, row in invalid.items()
        for error in row.errors
    ]
    sound = objects.without(invalid.keys())
    if pieces.fill_slice(sum(map(len, objects))):
        yield
    profiles = {row.metadata.name for row in sound.profiles}
    checks: tuple[Iterable[Problem | None], ...] = (
        _of_sound_fields(invalid, _communities(objects, sound.aliases())),
        _of_sound_fields(invalid, _references(objects, profiles, secrets, namespace)),
        conflicts(sound),
    )
    for problem in itertools.chain.from_iterable(checks):
        if problem is not None:
            problems.append(problem)
        if pieces.fill_slice(PIECES_OF_STEP):
            yield
    return problems


def _of_sound_fields(
    invalid: Mapping[ObjectRef, MetalLBObject], problems: Iterable[Problem]
) -> Iterator[Problem]:
    """Yield the findings that do not come of fields that are wrong by themselves."""
    for problem in problems:
        row = invalid.get(problem.objects[0])
        if row is None or any(unrelated([FieldError(problem.field, problem.message)], row.errors)):
            yield problem


def _naming_neighbor(row: MetalLBObject, message: str) -> str:
    """Return a message about a BGPPeer with its address as it is written, and its VRF."""
    if not isinstance(row, BGPPeer):
        return message
    spec = row.spec
    end = spec.peer_address or spec.interface
    if not end:
        return message
    vrf = vrf_of(row)
    where = f" in VRF {as_written(vrf)}" if vrf else ""
    return f"neighbor {as_written(end)}{where}: {message}"


def _communities(objects: Objects, names: Collection[str]) -> Iterator[Problem]:
    for row in objects.advertisements:
        for i, text in enumerate(row.spec.communities):
            if text in names:
                continue
            ref, path = ref_to(BGP_ADVERTISEMENT, row), f"spec.communities[{i}]"
            try:
                parse_community(text)
            except UnknownNotationError as error:
                message = f"no Community has the name, and {error}"
                yield problem_of_objects((ref,), path, message, "unresolved")
            except ValueError as error:
                yield problem_of_objects((ref,), path, str(error), "invalid")


# Peers


def _references(
    objects: Objects, profiles: Collection[str], secrets: Secrets, namespace: str
) -> Iterator[Problem]:
    for row in objects.peers:
        ref, name = ref_to(BGP_PEER, row), row.spec.bfd_profile
        if name and name not in profiles:
            text = f"there is no BFDProfile {name[:64]!r} that can be used"
            text = _naming_neighbor(row, text)
            yield problem_of_objects((ref,), "spec.bfdProfile", text, "unresolved")
        secret = row.spec.password_secret.name
        if secret and secrets is not None:
            password = password_of(secrets((namespace, secret)))
            if isinstance(password, str):
                text = _naming_neighbor(row, f"Secret {namespace}/{secret[:64]} {password}")
                yield problem_of_objects((ref,), "spec.passwordSecret", text, "unresolved")
