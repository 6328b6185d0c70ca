"""Candidates: the addresses and prefixes that may be advertised, and are explained."""

from __future__ import annotations

from typing import Protocol

from reconcilers.model import ObjectRef
from speaker.nlri import Family


class Candidate(Protocol):
    """One address or prefix of one object that may be advertised; dialects add what they need."""

    @property
    def object(self) -> ObjectRef:
        """The object that has the candidate, whatever the dialect."""
        ...

    @property
    def type(self) -> str:
        """The type of the candidate's address, whatever the dialect."""
        ...

    @property
    def family(self) -> Family | None:
        """The family of any dialect's candidate; None where the object has no address of the type."""
        ...

    @property
    def nlri(self) -> bytes | None:
        """The prefix of any dialect's candidate; None where the object has no address of the type."""
        ...

    @property
    def service_field(self) -> str | None:
        """The field of a Service that names any dialect's candidate (`ServiceAddress`), or None."""
        ...

    @property
    def in_pool(self) -> bool:
        """True if a pool that an administrator configured has any dialect's candidate."""
        ...
