"""The subject of an explanation, and the addresses that are explained."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from reconcilers.model import ObjectRef, RouteExplanation
from speaker.nlri import Family


class Target(NamedTuple):
    """The subject of an explanation: a prefix, an address, or an object."""

    text: str
    prefix: tuple[Family, bytes] | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None

    def names(self, ref: ObjectRef) -> bool:
        """True if the target is this object."""
        return (
            self.name == ref.name
            and self.kind in (None, ref.kind)
            and self.namespace in (None, ref.namespace)
        )


class Candidate(Protocol):
    """One address or prefix of one object that may be advertised; dialects add what they need."""

    @property
    def object(self) -> ObjectRef:
        """The object that has it."""
        ...

    @property
    def type(self) -> str:
        """The type of address."""
        ...

    @property
    def family(self) -> Family | None:
        """None where the object has no address of the type."""
        ...

    @property
    def nlri(self) -> bytes | None:
        """The prefix; None where the object has no address of the type."""
        ...

    @property
    def service_field(self) -> str | None:
        """The field of a Service that names the address (`ServiceAddress`), or None."""
        ...

    @property
    def in_pool(self) -> bool:
        """True if a pool that an administrator configured has the address (`ServiceAddress`)."""
        ...


def explanation_of(
    candidate: Candidate,
    reason: str,
    message: str = "",
    *,
    advertised: tuple[bytes, ...] = (),
    rule: ObjectRef | None = None,
) -> RouteExplanation:
    """Return the explanation of a candidate, without the instance and the peer."""
    return RouteExplanation(
        instance=None,
        peer=None,
        object=candidate.object,
        type=candidate.type,
        family=candidate.family,
        nlri=candidate.nlri,
        advertised=advertised,
        reason=reason,
        message=message,
        rule=rule,
    )
