"""What a dialect adds to the programs: conversions, subcommands, paths of the local API, metrics."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from reconcilers.model import Problem
from resources.kind import Kind
from statedb import Snapshot


class Converter(msgspec.Struct, frozen=True):
    """A conversion of ``waggle convert``: objects of some kinds become others."""

    kinds: tuple[Kind[Any], ...]
    """The kinds that are converted."""
    convert: Callable[[Mapping[str, Sequence[Any]]], tuple[list[dict[str, Any]], list[Problem]]]
    """Rows by kind to objects as JSON and notes on what has no equivalent."""
    target: str = ""
    """What ``--to`` calls the result; empty is the default."""


Ask: TypeAlias = Callable[[str, Mapping[str, str]], list[dict[str, Any]]]
"""Path and query parameters of the agent's local API to the items of the answer."""


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


class Gauge(msgspec.Struct, frozen=True):
    """A metric that a dialect adds: present values, read at each scrape of an agent."""

    name: str
    """``waggle_<dialect>_...``, with the unit at the end."""
    help: str
    values: Mapping[Any, float]
    """By the values of the labels, as a tuple."""
    labels: tuple[str, ...] = ()
