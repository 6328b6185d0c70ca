"""metav1.Condition: one aspect of an object's observed state."""

from __future__ import annotations

import time
from typing import Annotated, Final, Literal

from msgspec import Meta

from resources.crds.schema_markers import TYPED_LIST, doc
from resources.meta import Struct

_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_TYPE = rf"^({_DNS}(\.{_DNS})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class Condition(Struct, frozen=True):
    """One condition; the limits are metav1's."""

    type: Annotated[
        str,
        Meta(max_length=316, pattern=_TYPE),
        doc("The type of the condition, a qualified name."),
    ]
    status: Annotated[
        Literal["True", "False", "Unknown"], doc("Whether it is the case: True, False or Unknown.")
    ]
    reason: Annotated[
        str,
        Meta(min_length=1, max_length=1024, pattern=_REASON),
        doc("Why the status is what it is: one word, for programs."),
    ]
    message: Annotated[str, Meta(max_length=32768), doc("The details, for people; may be empty.")]
    last_transition_time: Annotated[
        str, doc("When the status became what it is (RFC 3339).", {"format": "date-time"})
    ]
    observed_generation: Annotated[
        int | None,
        doc(
            "The metadata.generation that the condition was computed for. When it is lower than "
            "the object's, the condition is of an older specification.",
            {"minimum": 0},
        ),
    ] = None


POSITIVE: Final = frozenset({"Accepted", "Effective", "Selected", "TransportAccepted"})
"""Condition types that are True while all is well; all others are True while something is not."""

NEUTRAL: Final = frozenset({"Selected"})
"""Condition types that may be as intended also where something is not the case."""


def is_adverse(type: str, status: bool) -> bool:  # noqa: A002  the API's word
    """True if a metav1.Condition reports that something is not as it should be."""
    return status is not (type in POSITIVE)


Conditions = Annotated[
    tuple[Condition, ...], doc("What is the case with this object, one item per type.", TYPED_LIST)
]


class ConditionsStatus(Struct, frozen=True):
    """A status that has conditions and nothing else."""

    conditions: Conditions = ()


def timestamp(seconds: float) -> str:
    """Return a Unix time as text of metav1.Time (RFC 3339, UTC), in whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
