"""What a dialect adds to the programs: conversions, subcommands, paths of the local API, metrics."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from reconcilers.model import Problem
from reconcilers.tables import IntentTables
from resources.kind import Kind
from speaker.api import PeerStatus
from statedb import Snapshot


class Converter(msgspec.Struct, frozen=True):
    """A conversion of ``waggle convert``: objects of some kinds become others."""

    kinds: tuple[Kind[Any], ...]
    """The kinds that are converted."""
    convert: Callable[[Mapping[str, Sequence[Any]]], tuple[list[dict[str, Any]], list[Problem]]]
    """Rows by kind to objects as JSON and notes on what has no equivalent."""
    target: str = ""
    """What ``--to`` calls the result; empty is the default."""


class DraftConverter(msgspec.Struct, frozen=True):
    """A conversion of ``waggle convert`` for objects that no kind reads: drafts of an API."""

    kinds: tuple[str, ...]
    """Their names, for messages."""
    convert: Callable[[Mapping[str, Any]], tuple[list[dict[str, Any]], list[Problem]] | None]
    """An object as JSON to the objects that replace it, and notes; None for any other object."""
    target: str = ""
    """What ``--to`` calls the result; empty is the default."""


class Answer(NamedTuple):
    """The answer to a request of a `PlainPath`."""

    status: int
    body: str


class Ask(Protocol):
    """Requests to the agent's local API: a path, and query parameters."""

    def __call__(self, path: str, query: Mapping[str, str], /) -> list[dict[str, Any]]:
        """Return the items of an answer."""
        ...

    def plain(self, path: str, query: Mapping[str, str], /) -> Answer:
        """Return the answer of a `PlainPath`, whatever its status."""
        ...


def _no_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flag."""


class Command(msgspec.Struct, frozen=True):
    """A subcommand of ``waggle`` that a dialect adds; ``--socket`` is added to its flags."""

    name: str
    help: str
    run: Callable[[argparse.Namespace, Ask], int]
    """Print; returns the exit status. An error of the agent ends the command: with status 4 where a
    name does not exist, else with 1."""
    add_flags: Callable[[argparse.ArgumentParser], object] = _no_flags


class ApiPath(msgspec.Struct, frozen=True):
    """A path of the agent's local API that a dialect adds; read-only."""

    path: str
    """Such as ``/v1/beacons``."""
    kind: str
    """The kind of the answer, such as ``BeaconList``."""
    read: Callable[[Snapshot, Mapping[str, str]], Sequence[Any]]
    """Query parameters to items, which are encoded as JSON.

    Raises ValueError for a parameter that cannot be read, LookupError where nothing has the name.
    """
    parameters: tuple[str, ...] = ()


class ViewContext(msgspec.Struct, frozen=True):
    """What a `PlainPath` is read from."""

    snapshot: Snapshot
    intent: IntentTables
    dialect: str
    """The name that the dialect's rows have in the intent."""
    sessions: Sequence[PeerStatus]
    """The state of all sessions."""


class RefusedError(Exception):
    """A request that a `PlainPath` refuses: an HTTP status, and a sentence as its body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class PlainPath(msgspec.Struct, frozen=True):
    """A path of the agent's local API with an answer of another program's form, for its scripts."""

    path: str
    read: Callable[[ViewContext, Mapping[str, str]], Any]
    """Query parameters to what is encoded as JSON; an iterator yields the groups of a list, which
    are read and sent in turn with the sessions. Raises `RefusedError` before the first group."""


class Gauge(msgspec.Struct, frozen=True):
    """A metric that a dialect adds: present values, read at each scrape of an agent."""

    name: str
    """``waggle_<dialect>_...``, with the unit at the end."""
    help: str
    values: Mapping[Any, float]
    """By the values of the labels, as a tuple."""
    labels: tuple[str, ...] = ()
