"""All problems of the router's file at once: an error is noted, and what is wrong taken out of the way.

Types, keys and limits come before the settings of the speaker, and these before what neighbours have in
common. A value that is wrong has its default for the steps after it, so that each finds its own errors.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect as shapes

from cells.safe_text import plain_reason
from resources.schema import did_you_mean
from speaker.api import DynamicPeerConfig, InvalidConfig, InvalidSecret, PeerConfig, Policy
from speaker.rib.policy import InvalidTerm, compile_export
from waggle.router_config.bfd import KEYS_OF_OTHER_TYPES, NOT_OFFERED, BfdKey, BfdSettings
from waggle.router_config.file import Config, duplicates
from waggle.router_config.file_values import ConfigError, key_of, with_key
from waggle.router_config.neighbor import EXPORTS, Neighbor
from waggle.router_config.policies import PolicyFile, PrefixList

MAX_PROBLEMS: Final = 50
"""Problems of one file that are listed."""
_PLACEHOLDERS: Final[Mapping[str, Any]] = {
    "asn": 1,
    "routerID": "192.0.2.1",
    "address": "192.0.2.1",
}
"""Values of required keys that are missing or wrong, for the steps after."""
_ENDS: Final = {"address": "192.0.2.1", "prefix": "192.0.2.0/24", "interface": "eth0"}
_PART: Final = re.compile(r"[^.\[\]]+|\[\d+\]")
_NAMED: Final[tuple[tuple[str, Any], ...]] = (
    ("prefixLists", PrefixList),
    ("policies", PolicyFile),
    ("bfdProfiles", BfdSettings),
)
"""Keys whose values have names; msgspec has no names in the place of an error, but ``[...]``."""


def problems(data: Any) -> Iterator[str]:  # noqa: ANN401  YAML
    """Yield a sentence for each problem of a decoded file, with its key."""
    sentences: list[str] = []
    readable = _readable(data, sentences)
    yield from sentences
    if readable is not None and len(sentences) < MAX_PROBLEMS:
        yield from _of_settings(readable, sentences)


def _readable(data: Any, sentences: list[str]) -> Config | None:  # noqa: ANN401
    """Add the errors of keys, types and limits; returns the file without them if it can be read."""
    if isinstance(data, dict):
        for key, kind in _NAMED:
            entries = data.get(key)
            if isinstance(entries, dict):
                cleaned = {
                    name: _without_errors(entry, kind, f"{key}.{name}", sentences)
                    for name, entry in entries.items()
                }
                data = {**data, key: {n: e for n, e in cleaned.items() if e is not None}}
    data = _without_errors(data, Config, "", sentences)
    return None if data is None else msgspec.convert(data, Config)


def _without_errors(value: Any, kind: Any, entry: str, sentences: list[str]) -> Any:  # noqa: ANN401
    """Return a value that can be converted; None if there is none. Its errors are added."""
    seen: set[str] = set()
    while len(sentences) < MAX_PROBLEMS:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            message, _, place = str(error).partition(" - at `$")
            path = place.rstrip("`").lstrip(".")
            key = re.fullmatch(
                r"Object (?:contains unknown|missing required) field `(.*)`", message
            )
            wrong = ".".join(part for part in (path, key[1] if key else "") if part)
            if wrong in seen and "missing" not in message:
                return None
            if wrong not in seen:
                where = f"{entry}.{path}" if entry and path[:1] not in ("", "[") else entry + path
                sentences.append(_sentence(message, where, kind, path))
            seen.add(wrong)
            value = _without(value, _PART.findall(wrong), missing="missing" in message)
            if value is None:
                return None
        else:
            return value
    return None


def _sentence(message: str, where: str, kind: Any, path: str) -> str:  # noqa: ANN401
    """Rewrite a message of msgspec: ``neighbors[0]: unknown key "holdtime"``, with a similar key."""
    shape = _shape_at(shapes.type_info(kind), _PART.findall(path))
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if unknown:
        known = (
            [f.encode_name for f in shape.fields] if isinstance(shape, shapes.StructType) else []
        )
        message = f'unknown key "{unknown[1]}"{did_you_mean(unknown[1], known)}'
        of_bfd = isinstance(shape, shapes.StructType) and shape.cls is BfdKey
        if of_bfd and unknown[1].lower() in KEYS_OF_OTHER_TYPES:
            message = f'unknown key "{unknown[1]}": {NOT_OFFERED}'
    elif missing:
        message = f'the key "{missing[1]}" is missing'
    elif message.startswith("Invalid enum value") and isinstance(shape, shapes.LiteralType):
        known = [str(value) for value in shape.values]
        hint = did_you_mean(message.split("'")[1] if "'" in message else "", known)
        message = f"{plain_reason(message)}: {', '.join(known)}{hint}"
    else:
        message = plain_reason(message)
    return f"{where}: {message}" if where else message


def _shape_at(shape: shapes.Type, parts: Sequence[str]) -> shapes.Type | None:
    """Return the shape of a value within another value."""
    for part in _plain(shape):
        if not parts:
            if isinstance(part, shapes.StructType | shapes.LiteralType):
                return part
            continue
        inner: shapes.Type | None = None
        if isinstance(part, shapes.StructType):
            inner = next((f.type for f in part.fields if f.encode_name == parts[0]), None)
        elif isinstance(part, shapes.ListType | shapes.VarTupleType):
            inner = part.item_type
        result = None if inner is None else _shape_at(inner, parts[1:])
        if result is not None:
            return result
    return None


def _plain(shape: shapes.Type) -> Iterator[shapes.Type]:
    """Yield the alternatives of a shape, without their descriptions."""
    if isinstance(shape, shapes.Metadata):
        yield from _plain(shape.type)
    elif isinstance(shape, shapes.UnionType):
        for option in shape.types:
            yield from _plain(option)
    else:
        yield shape


def _without(value: Any, parts: Sequence[str], *, missing: bool) -> Any:  # noqa: ANN401
    """Return a value without a part of it, or with a missing part; None where that cannot be."""
    if not parts:
        return None
    first, rest = parts[0], parts[1:]
    if first.startswith("["):
        index = int(first[1:-1])
        if not isinstance(value, list) or index >= len(value):
            return None
        if not rest:
            return [*value[:index], *value[index + 1 :]]
        inner = _without(value[index], rest, missing=missing)
        return None if inner is None else [*value[:index], inner, *value[index + 1 :]]
    if not isinstance(value, dict):
        return None
    if rest:
        inner = _without(value.get(first), rest, missing=missing)
        return None if inner is None else {**value, first: inner}
    if missing:
        return {**value, first: _PLACEHOLDERS[first]} if first in _PLACEHOLDERS else None
    return {key: item for key, item in value.items() if key != first}


# Settings


def _of_settings(config: Config, known: Sequence[str]) -> Iterator[str]:
    """Yield the errors that the speaker's settings have beside known ones."""
    seen = set(known)
    for sentence in (
        *_raised(config.check_prefix_lists),
        *_raised(config.instance),
        *_of_peers(config),
        *_of_keys(config),
        *_originated(config),
        *_raised(config.collectors),
        *_raised(config.fib),
    ):
        # What is known has been taken out of the file: a rule about it is no news.
        if sentence not in seen and not any(_about(sentence, rule) for rule in known):
            seen.add(sentence)
            yield sentence


def _about(sentence: str, known: str) -> bool:
    """True if a sentence is about the key of a known one, which has been taken out of the file."""
    place, _, message = known.partition(": ")
    missing = re.match(r'(?:the key "(.*)" is missing|unknown key)', message or place)
    if missing:
        holder, key = (place if message else "", missing[1])
    else:
        holder, _, key = place.rpartition(".")
    return (
        key is not None
        and sentence.startswith(holder)
        and bool(re.search(rf"\b{re.escape(key)}\b", sentence))
    )


def _raised(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except InvalidConfig as error:
        yield with_key(error)
    except ConfigError as error:
        yield str(error)


def _originated(config: Config) -> Iterator[str]:
    for i, text in enumerate(config.originate):
        single = msgspec.structs.replace(config, originate=(text,))
        for sentence in (*_raised(single.originated), *_raised(single.redistributions)):
            yield sentence.replace("originate[0]", f"originate[{i}]", 1)


def _of_peers(config: Config) -> Iterator[str]:
    policies: dict[str, Policy] = {}
    yield from _of_policies(config, policies)
    peers: dict[int, PeerConfig | DynamicPeerConfig] = {}
    for place, neighbor in enumerate(config.neighbors):
        corrected = yield from _of_neighbor(place, neighbor, policies, config)
        if corrected is not None:
            peers[place] = corrected.settings(policies, config.bfd_profiles)
    yield from duplicates(peers)


def _of_keys(config: Config) -> Iterator[str]:
    """Yield the errors of the files with keys of BFD; other errors of neighbours are known."""
    for place, neighbor in enumerate(config.neighbors):
        try:
            neighbor.bfd_key(config.bfd_profiles)
        except ValueError as error:
            yield f"neighbors[{place}].{error}"


def _of_policies(config: Config, policies: dict[str, Policy]) -> Iterator[str]:
    """Yield the errors of all terms of all policies; adds each policy, as far as it is valid."""
    for name, policy in config.policies.items():
        policies[name] = Policy(name=name)
        if name in EXPORTS:
            yield f"policies.{name}: {name} is a reserved word"
            continue
        for number, term in enumerate(policy.terms):
            try:
                terms = (*[type(term)()] * number, term)
                compile_export(name, PolicyFile(list(terms)).policy(name, config.rules))
            except InvalidTerm as error:
                yield f"policies.{name}.terms[{number}].{key_of(error.place)}: {error.fault}"
            except ValueError as error:
                yield str(error)


def _of_neighbor(
    place: int, neighbor: Neighbor, policies: Mapping[str, Policy], config: Config
) -> Generator[str, None, Neighbor | None]:
    """Yield the errors of a neighbour: a field that is wrong gets its default, until none is.

    Returns the neighbour without them; None where its end is wrong.
    """
    name = neighbor.name or neighbor.address or neighbor.prefix or neighbor.interface
    neighbor = msgspec.structs.replace(neighbor, name=name)
    replaced: set[str] = set()
    while True:
        try:
            neighbor.settings(policies, config.bfd_profiles)
        except InvalidConfig as error:
            yield f"neighbors[{place}]: {with_key(error)}"
            key = key_of(error.field.partition(".")[0])
        except (InvalidSecret, ValueError) as error:
            yield f"neighbors[{place}]: {error}"
            key = re.split(r"[.:]", str(error))[0]
        else:
            return None if replaced & _ENDS.keys() else neighbor
        field, default = _fields().get(key, ("", msgspec.NODEFAULT))
        # Without any end a neighbour has no other errors.
        default = _ENDS.get(field) or default
        if default is msgspec.NODEFAULT or getattr(neighbor, field) in (None, default):
            return None
        replaced.add(field)
        neighbor = msgspec.structs.replace(neighbor, **{field: default})


@functools.cache
def _fields() -> dict[str, tuple[str, Any]]:
    """Return the name and default of each field of a neighbour by its key."""
    # Evaluates the annotations, so once, and not for a file without an error.
    return {
        field.encode_name: (field.name, field.default) for field in msgspec.structs.fields(Neighbor)
    }
