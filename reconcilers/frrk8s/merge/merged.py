"""What a merge results in: routers with their neighbours, or problems. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from reconcilers.frrk8s.unit import NeighborKey, Session, Unit
from reconcilers.frrk8s.values import Prefix
from reconcilers.model import Attributes, BfdProfile, ObjectRef, PrefixRule, Problem
from resources.secret_value import SecretValue


class MergedNeighbor(NamedTuple):
    """A neighbour, merged from all objects with it."""

    key: NeighborKey
    session: Session
    bfd: BfdProfile | None
    bfd_field: str
    """Where the first of ``origins`` refers to the profile; empty if another one does."""
    graceful_restart: bool
    families: frozenset[str]
    accept: frozenset[PrefixRule] | None
    """None accepts all."""
    accept_origins: tuple[ObjectRef, ...]
    """The objects that accept all, the oldest first."""
    exports: tuple[tuple[ObjectRef, Mapping[Prefix, Attributes]], ...]
    """What each object advertises to it."""
    rules: tuple[Any, ...]
    """Rules of feeding dialects."""
    origins: tuple[ObjectRef, ...]
    password: SecretValue | None
    """The password that is a field of an object."""


class MergedRouter(NamedTuple):
    """The router of a VRF, merged from all objects with it."""

    vrf: str
    asn: int
    router_id: str | None
    imports: frozenset[str]
    neighbors: tuple[MergedNeighbor, ...]
    origins: tuple[ObjectRef, ...]
    vrf_field: str
    """Where the first of ``origins`` has the VRF, for problems."""
    given: tuple[tuple[ObjectRef, frozenset[Prefix]], ...]
    """The prefixes of each object."""


class Merge(NamedTuple):
    """The result: routers by VRF, the default one first, and problems."""

    routers: tuple[MergedRouter, ...] | None
    """None while the objects as a whole have a conflict."""
    problems: tuple[Problem, ...]
    accepted: tuple[Unit, ...]
    """The units that the routers are merged from."""
    partial: tuple[tuple[ObjectRef, str], ...] = ()
    """Objects of which a part has no effect, with the reason: RawConfig, EVPN, BFD."""
