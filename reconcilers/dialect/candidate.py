"""Candidates: the addresses and prefixes that may be advertised, and are explained."""

from __future__ import annotations

from typing import Protocol

from reconcilers.model import ObjectRef
from speaker.nlri import Family


class Candidate(Protocol):
    """One address or prefix of one object that may be advertised; dialects add what they need."""

    @property
    def object(self) -> ObjectRef:
        """The object that has the candidate."""
        ...

    @property
    def type(self) -> str:
        """The type of the candidate's address."""
        ...

    @property
    def family(self) -> Family | None:
        """The candidate's family; None where the object has no address of the type."""
        ...

    @property
    def nlri(self) -> bytes | None:
        """The candidate's prefix; None where the object has no address of the type."""
        ...

    @property
    def service_field(self) -> str | None:
        """The field of a Service that names the candidate (`ServiceAddress`), or None."""
        ...

    @property
    def in_pool(self) -> bool:
        """True if a pool that an administrator configured has the candidate."""
        ...
