"""Reads the router's file; an error is one sentence with the file and the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from cells.text import plain_reason
from speaker.api import InvalidConfig
from waggle.router.config.file import Config
from waggle.router.config.values import ConfigError, with_key
from waggle.router.policies import PolicyFile, PrefixList

MAX_FILE = 64 * 1024 * 1024
"""Octets."""


def load(path: Path) -> Config:
    """Load and validate a file. Raises `ConfigError`."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if len(text) > MAX_FILE:
        raise ConfigError(f"{path}: larger than {MAX_FILE} octets")
    try:
        # The C loader if available: a lab may originate a hundred thousand prefixes.
        data = yaml.load(text, Loader=_Loader)  # noqa: S506  a safe loader, see below
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {_one_line(error)}") from None
    try:
        config = msgspec.convert(data, Config)
        config.check_prefix_lists()
        config.instance()
        config.peers()
        config.originated()
        config.collectors()
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_entry_sentence(data) or _sentence(str(error))}") from None
    except InvalidConfig as error:
        raise ConfigError(f"{path}: {with_key(error)}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return config


_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SAFE):  # type: ignore[misc]  # the base is chosen at run time
    """The safe loader, in C if available, without duplicate keys: PyYAML takes the last one."""


def _construct_mapping(loader: Any, node: yaml.MappingNode) -> Iterator[dict[Any, Any]]:  # noqa: ANN401
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            text = f'the key "{key.value}" is there twice'
            raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
        if isinstance(key, yaml.ScalarNode):
            seen.add(key.value)
    data: dict[Any, Any] = {}
    yield data
    data.update(loader.construct_mapping(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "not YAML"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


def _entry_sentence(data: object) -> str:
    """Return the sentence for an invalid list or policy; empty without one.

    msgspec has no names in the place of an error, but ``[...]``.
    """
    for key, kind in (("prefixLists", PrefixList), ("policies", PolicyFile)):
        entries = data.get(key) if isinstance(data, dict) else None
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            try:
                msgspec.convert(entry, kind)
            except msgspec.ValidationError as error:
                return _sentence(str(error), f"{key}.{name}")
    return ""


def _sentence(text: str, entry: str = "") -> str:
    """Rewrite the message of msgspec as ``neighbors[0]: unknown key "holdtime"``.

    ``entry`` is the place of the converted value.
    """
    message, _, place = text.partition(" - at `$")
    place = f"{entry}{place.rstrip('`')}".lstrip(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if unknown:
        message = f'unknown key "{unknown[1]}"'
    elif missing:
        message = f'the key "{missing[1]}" is missing'
    else:
        message = plain_reason(message)
    return f"{place}: {message}" if place else message
