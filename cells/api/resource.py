"""Resources and actions of the local API: a path each, and the items that a GET or POST returns.

Any cell may contribute members to the groups `ApiResource` (an answer that ends), `ApiStream` (items as
they come) and `ApiAction` (work that a POST requests); the server knows none by name.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

import msgspec

from cells.hive.unknown_name import unknown_name

Query = Mapping[str, str]
"""The parameters of a request, each of them one of the resource's."""


class NotFoundError(Exception):
    """A peer or an instance that does not exist; ``str()`` is one sentence."""

    unknown: str | None = None
    """``peer``, ``instance`` or ``family``, where no such name exists; None for other reasons."""

    @classmethod
    def of_name(
        cls, kind: str, name: str, known: Iterable[str | None], instance: str | None = None
    ) -> NotFoundError:
        """Return the error about an unknown name, as `unknown_name` has it."""
        error = cls(unknown_name(kind, name, known, instance))
        error.unknown = kind
        return error


class BadRequestError(Exception):
    """A parameter that cannot be read; ``str()`` is one sentence."""


class PlainError(Exception):
    """A request that an `ApiPlain` refuses: an HTTP status, and a sentence as its body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class UnavailableError(Exception):
    """A request that cannot be answered yet; ``str()`` is one sentence."""


def no_notes() -> Sequence[str]:
    """Return no notes."""
    return ()


def no_problems(empty: bool) -> Sequence[str]:
    """Return no problems."""
    del empty
    return ()


class ApiResource(msgspec.Struct, frozen=True, kw_only=True):
    """One path of the API.

    ``read`` returns the items, or an iterator of slices of them where there may be many: less than 2
    ms of work each, empty ones included. Between two slices the event loop is left to the sessions.
    Raises `NotFoundError` or `BadRequestError` before the first item.
    """

    path: str
    """For example ``/v1/peers``."""
    kind: str
    """Of the list, for example ``PeerList``."""
    parameters: tuple[str, ...] = ()
    limited: bool = False
    """Whether the parameter ``limit`` is known: the number of items after which the answer ends."""
    read: Callable[[Query], Sequence[Any] | Iterator[Sequence[Any]]]
    notes: Callable[[], Sequence[str]] = no_notes
    """Returns what may explain an answer without items."""
    problems: Callable[[bool], Sequence[str]] = no_problems
    """Returns why items are missing; the argument is whether the answer has none."""


class ApiPlain(msgspec.Struct, frozen=True, kw_only=True):
    """One path of the API whose answer is not in the API's form: another program's scripts read it.

    ``read`` returns what is encoded as JSON, or an iterator of groups of a list. It raises
    `PlainError`.
    """

    path: str
    read: Callable[[Query], Any]


class ApiStream(msgspec.Struct, frozen=True, kw_only=True):
    """One path of the API whose answer lasts until the client leaves: an item a line, as JSON.

    A client that accepts ``text/event-stream`` (a browser) gets each item as a server-sent event, and
    a comment for a group without items.

    ``read`` raises `NotFoundError` or `BadRequestError` at once. The generator is read no faster than
    the client reads, and closed when the client leaves; an exception ends the answer with a line of
    errors.
    """

    path: str
    parameters: tuple[str, ...] = ()
    read: Callable[[Query], AsyncGenerator[Sequence[Any]]]


class ApiFile(msgspec.Struct, frozen=True, kw_only=True):
    """One path whose answer is a file for browsers."""

    path: str
    media_type: str
    read: Callable[[], bytes]
    headers: Mapping[str, str]


class NoBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of an action without parameters: absent, or an empty object."""


class ApiAction(msgspec.Struct, frozen=True, kw_only=True):
    """Work that a POST requests.

    ``run`` returns the items once the work is done: a function where nothing is waited for, a
    coroutine function otherwise. It raises `UnavailableError` where it cannot be done at present,
    `NotFoundError` or `BadRequestError`.
    """

    path: str
    """For example ``/v1/verify``."""
    kind: str
    """Of the list, for example ``DriftList``."""
    run: Callable[[Any], Sequence[Any]] | Callable[[Any], Awaitable[Sequence[Any]]]
    """Called with the body of the request."""
    body: type = NoBody
    """The type of the body, which is decoded strictly from JSON."""

    async def perform(self, body: object) -> Sequence[Any]:
        """Run, and return the items."""
        items = self.run(body)
        return await items if inspect.isawaitable(items) else items
