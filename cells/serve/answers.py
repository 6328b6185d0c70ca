"""Bodies of the API's answers (`cells.api.model`), and the status of a refusal."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from cells.api.model import API_VERSION, Envelope, ErrorItem
from cells.api.resource import BadRequestError, NotFoundError, UnavailableError
from cells.version import version
from resources.errors import INVALID_JSON

T = TypeVar("T")

VERSION: Final = version()
REFUSALS: Final[tuple[tuple[type[Exception], int, str], ...]] = (
    (BadRequestError, 400, "BadRequest"),
    (NotFoundError, 404, "NotFound"),
    (UnavailableError, 503, "Unavailable"),
)
"""The exceptions of resources and actions: HTTP status and code of the answer."""
REFUSED: Final = tuple(error for error, _, _ in REFUSALS)

encode: Final = msgspec.json.Encoder().encode


def listed(
    kind: str, items: Sequence[Any], notes: Sequence[str] = (), problems: Sequence[str] = ()
) -> bytes:
    """Return the body of an answer with items."""
    envelope: Envelope[Any] = Envelope(
        kind=kind,
        generated_at=now(),
        items=list(items),
        version=VERSION,
        notes=list(notes) or msgspec.UNSET,
        problems=list(problems) or msgspec.UNSET,
    )
    return encode(envelope)


def refused(error: Exception, kind: str) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request that failed with one of `REFUSED`."""
    for refused_with, status, code in REFUSALS:
        if isinstance(error, refused_with):
            unknown = error.unknown if isinstance(error, NotFoundError) else None
            return status, refusal(code, str(error), kind, unknown)
    raise error


def refusal(code: str, message: str, kind: str, unknown: str | None = None) -> bytes:
    """Return the body of an answer without items."""
    errors = [ErrorItem(code=code, message=message, unknown=unknown)]
    envelope: Envelope[Any] = Envelope(
        kind=kind, generated_at=now(), items=[], errors=errors, version=VERSION
    )
    return encode(envelope)


def decoded(decoder: msgspec.json.Decoder[T], octets: bytes) -> T:
    """Return the body of the request of an action. Raises `BadRequestError`."""
    try:
        return decoder.decode(octets or b"{}")
    except INVALID_JSON as error:
        raise BadRequestError(str(error)) from None


def head(kind: str, problems: Sequence[str]) -> dict[str, Any]:
    """Return the envelope without its items."""
    members = {"apiVersion": API_VERSION, "kind": kind, "generatedAt": now(), "errors": []}
    members["version"] = VERSION
    return members | ({"problems": problems} if problems else {})


def now() -> datetime:
    """Return the time, in seconds."""
    return _at(int(time.time()))


@functools.lru_cache(1)
def _at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
