"""Writes of the operator to the API server as values, and the times when they are sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from reconcilers.model import Delete, ObjectRef
from reconcilers.target import Description, Pace
from reconcilers.target.given import GivenObjects
from reconcilers.target.reconciler import ObjectKey
from reconcilers.target.single_value import SingleValue
from resources.kind import Kinds

T = TypeVar("T")
JsonObject: TypeAlias = dict[str, Any]

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 512.0
"""Bounds of the pause after a failed write."""
RETRY_JITTER: Final = (0.75, 1.0)
"""Factors of such a pause, at random."""
WRITE_INTERVAL_SECONDS = 1.0
"""Between two writes of one object: the changes of that time are one write."""
UNCONFIRMED_SECONDS = 30.0
"""After which a write is repeated that the watch has not confirmed."""


class Apply(msgspec.Struct, frozen=True):
    """Make an object have these fields (server-side apply: fields of other writers stay)."""

    object: ObjectRef
    content: JsonObject


class Annotate(msgspec.Struct, frozen=True):
    """Set annotations of another writer's object, and nothing else; its values are kept by default.

    Server-side apply by a field manager of the dialect's own.
    """

    object: ObjectRef
    content: JsonObject
    dialect: str
    take_over: bool = False
    """Whether values of other managers are replaced."""


Write = Apply | Delete | Annotate


class PlannedWrites(GivenObjects[T], SingleValue):
    """The parts of a reconciler of the operator's plan that do not depend on what is written."""

    def __init__(
        self,
        name: str,
        order: int,
        summary: str,
        tables: Sequence[str],
        kinds: Kinds,
        *,
        compare: float,
        retry_changed: bool,
        allowed: Callable[[], bool],
        now: Callable[[], float],
    ) -> None:
        """Reconcile plans made from ``tables``; ``compare`` and ``retry_changed`` as in `Pace`.

        ``allowed`` returns whether this operator leads, ``now`` a monotonic time in seconds.
        """
        super().__init__(
            Description(
                name=name,
                order=order,
                tables=tuple(tables),
                target="API server",
                summary=summary,
                ordered=True,
                pace=Pace(
                    interval=WRITE_INTERVAL_SECONDS,
                    first_retry=FIRST_RETRY_SECONDS,
                    last_retry=LONGEST_RETRY_SECONDS,
                    jitter=RETRY_JITTER,
                    retry_changed=retry_changed,
                    compare=compare,
                ),
            )
        )
        self._kinds = kinds
        self._allowed = allowed
        self._now = now

    def possible(self, key: ObjectKey) -> bool:
        """True while this operator leads, and its writes may be sent."""
        del key
        return self._allowed()
