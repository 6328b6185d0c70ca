"""Rules of fields that several of Cilium's kinds share: limits as annotations, unique names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta

from resources.crds.schema_markers import doc
from resources.errors import FieldError

MAX_ASN = 4294967295

Asn = Annotated[int, Meta(ge=1, le=MAX_ASN)]
AnyAsn = Annotated[int, Meta(ge=0, le=MAX_ASN)]
"""0 accepts any."""
Port = Annotated[int, Meta(ge=1, le=65535)]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
ListenPort = Annotated[
    Port | None,
    doc(
        "The TCP port on which connections are accepted. Without one, connections are only opened by "
        "this side."
    ),
]
LocalPreference = Annotated[
    Annotated[int, Meta(ge=0, le=4294967295)] | None,
    doc("The local preference of the routes; sent to iBGP peers only (RFC 4271 section 5.1.5)."),
]
ConnectRetryTime = Annotated[
    int,
    Meta(ge=1, le=2147483647),
    doc("The longest pause between two attempts to connect (RFC 4271 section 8)."),
]
"""In seconds."""


def duplicate_errors(names: Iterable[str], path: str) -> Iterator[FieldError]:
    """Yield an error for each name that a list field of Cilium's kinds has more than once."""
    for name, count in Counter(names).items():
        if count > 1:
            yield FieldError(path, f"duplicate name {name!r}")
