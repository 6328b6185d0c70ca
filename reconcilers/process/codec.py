"""Messages as octets: a header of JSON, and fields of octets behind it as they are.

A frame is the length of what follows (32 bits, network order), the length of the header (32 bits), the
header, and octets. The header is an object with the kind of the message and its fields by name; a field
of octets is ``[offset, length]`` in the octets behind the header. A receiver ignores fields and kinds
that it does not know, and fields that are absent have their defaults: so programs of two versions can
talk, and the first message in both directions negotiates the version.
"""

from __future__ import annotations

import enum
import json
import struct
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

MAX_FRAME: Final = 1 << 26
"""Octets: three million routes."""
_LENGTHS: Final = struct.Struct("!II")
_KIND: Final = "kind"

M = TypeVar("M")


class Greeting(Protocol):
    """The first message of any protocol. Versions that do not overlap end the connection."""

    @property
    def program(self) -> str:
        """Name and version of the program that greets, for the logs of its peer."""

    @property
    def versions(self) -> tuple[int, int]:
        """The first and the last version of the messages that the program encodes and decodes."""


class ProtocolError(Exception):
    """The other side sent what is no message."""


class VersionError(Exception):
    """No version of the messages that both sides speak."""

    def __init__(self, hello: Greeting, versions: tuple[int, int]) -> None:
        theirs = "{}-{}".format(*hello.versions)
        super().__init__(
            f"{hello.program} speaks versions {theirs} of the messages, "
            "this program {}-{}".format(*versions)
        )


class Codec(Generic[M]):
    """The messages of one process: named tuples, or structs of msgspec, of plain fields."""

    def __init__(self, kinds: Any, versions: tuple[int, int]) -> None:  # noqa: ANN401  a union
        """``kinds``: all messages of both directions."""
        self.versions = versions
        self._kinds: dict[str, _Read] = {
            kind.__name__: _record(kind) for kind in typing.get_args(kinds)
        }

    def common_version(self, hello: Greeting) -> int:
        """Return the version of messages in common with a `Greeting`. Raises `VersionError`."""
        first = max(self.versions[0], hello.versions[0])
        last = min(self.versions[1], hello.versions[1])
        if first > last:
            raise VersionError(hello, self.versions)
        return last

    def encode(self, message: M) -> bytes:
        """Return the frame of a message between the agent and a process, as octets."""
        octets: list[bytes] = []
        used = 0

        def plain(value: Any) -> Any:  # noqa: ANN401  of any field
            nonlocal used
            if isinstance(value, bytes):
                octets.append(value)
                used += len(value)
                return (used - len(value), len(value))
            names = _fields(value)
            if names is not None:
                return {name: plain(getattr(value, name)) for name in names}
            if isinstance(value, tuple):
                return [plain(item) for item in value]
            return value

        fields = plain(message)
        header = json.dumps(
            {_KIND: type(message).__name__, **fields}, separators=(",", ":")
        ).encode()
        size = 4 + len(header) + used
        return b"".join((_LENGTHS.pack(size, len(header)), header, *octets))

    def decode(self, header: bytes, octets: bytes) -> M | None:
        """Return the message of a frame; None for a kind of another version. Raises `ProtocolError`."""
        try:
            fields = json.loads(header)
            read = self._kinds.get(fields[_KIND])
            message: M | None = None if read is None else read(fields, octets)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ProtocolError(f"{type(error).__name__}: {error}") from error
        return message

    def decoder(self) -> Decoder[M]:
        """Return a decoder, which cuts messages out of a stream."""
        return Decoder(self)


class Decoder(Generic[M]):
    """Cuts messages out of a stream."""

    def __init__(self, codec: Codec[M]) -> None:
        self._codec = codec
        self._buffer = bytearray()

    def feed(self, octets: bytes) -> Iterator[M]:
        """Take octets and yield the decoded messages that are complete. Raises `ProtocolError`."""
        self._buffer += octets
        while len(self._buffer) >= _LENGTHS.size:
            size, header = _LENGTHS.unpack_from(self._buffer)
            if size > MAX_FRAME or header > size - 4:
                raise ProtocolError(f"a message of {size} octets with a header of {header}")
            end = 4 + size
            if len(self._buffer) < end:
                return
            frame = bytes(self._buffer[_LENGTHS.size : end])
            del self._buffer[:end]
            message = self._codec.decode(frame[:header], frame[header:])
            if message is not None:
                yield message


def _fields(value: Any) -> tuple[str, ...] | None:  # noqa: ANN401  a value or a class
    """Return the names of the fields of a record; None for any other value."""
    names: tuple[str, ...] | None = getattr(value, "_fields", None)
    return names if names is not None else getattr(value, "__struct_fields__", None)


_Read = Callable[[Any, bytes], Any]


def _reader(kind: Any) -> _Read:  # noqa: ANN401  an annotation
    """Return the function that makes a value of JSON's, by the annotation of the field."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is bytes:
        return _octets
    if origin is tuple and arguments[-1] is Ellipsis:
        item = _reader(arguments[0])
        return lambda value, octets: tuple(item(each, octets) for each in _list(value))
    if origin is tuple:
        items = [_reader(argument) for argument in arguments]
        return lambda value, octets: tuple(
            read(each, octets) for read, each in zip(items, _list(value), strict=True)
        )
    if origin is types.UnionType:
        (kept,) = (argument for argument in arguments if argument is not type(None))
        inner = _reader(kept)
        return lambda value, octets: None if value is None else inner(value, octets)
    if _fields(kind) is not None:
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return lambda value, _: kind(value)
    return lambda value, _: _plain(value, kind)


def _record(kind: Any) -> _Read:  # noqa: ANN401  a class
    hints = typing.get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in _fields(kind) or ()}

    def read(value: Any, octets: bytes) -> Any:  # noqa: ANN401
        if not isinstance(value, dict):
            raise TypeError(f"{kind.__name__}: {value!r} is no object")
        return kind(**{n: f(value[n], octets) for n, f in readers.items() if n in value})

    return read


def _list(value: Any) -> list[Any]:  # noqa: ANN401
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _octets(value: Any, octets: bytes) -> bytes:  # noqa: ANN401
    first, length = value
    if not 0 <= first <= first + length <= len(octets):
        raise ValueError(f"{value!r} is outside of the octets")
    return octets[first : first + length]


def _plain(value: Any, kind: type) -> Any:  # noqa: ANN401
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
