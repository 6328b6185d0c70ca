"""The lines of a recording: JSON objects, distinguished by their member ``line``.

======  =========================================================================================
header  the first line: the format's version, programs, time, and the parameters of the engine
input   one input: its number, the engine's time, its type and fields, a checksum of the actions
digest  the engine's state after the input of that number, one checksum per part
end     the last line: why the recording ended
======  =========================================================================================

Octets are hex digits, also in prefixes (as on the wire). A password is a number, the same for
equal passwords: enough to see its presence and its change. No clock, file or engine is read here.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Mapping
from typing import Any, Final, final, get_args

import msgspec

from speaker.api import DynamicPeerConfig, PeerConfig, RouteAttributes, Secret
from speaker.engine.inputs import BytesReceived, Input, SetPeer, UpdateRoutes
from speaker.nlri import Family

FORMAT: Final = 2

INPUTS: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in get_args(Input)}
"""Every input by its name in a recording."""
_RNG: Final = struct.Struct(">625I")
"""The state of `random.Random`: 624 words and a position."""


class BadRecording(ValueError):  # noqa: N818  named after the fault
    """A file that this version cannot replay; names the line and the rule that it breaks."""

    def __init__(self, number: int, rule: str) -> None:
        super().__init__(f"line {number}: {rule}")
        self.number = number


class Header(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="header", rename="camel"
):
    """The first line; times are the engine's (``now``) and Unix time (``started``), in seconds."""

    format: int
    version: str
    """Of the program that recorded it."""
    python: str
    started: float
    now: float
    rng: str
    """The state of the engine's random number generator, in hex digits."""
    restarting: bool
    max_queue: int

    def random(self) -> random.Random:
        """Return the engine's random number generator. Raises ValueError."""
        rng = random.Random()  # noqa: S311  jitter, no secret
        octets = bytes.fromhex(self.rng)
        if len(octets) != _RNG.size:
            raise ValueError("rng: not the state of a generator")
        rng.setstate((3, _RNG.unpack(octets), None))
        return rng


def rng_state(rng: random.Random) -> str:
    """Return the state of a random number generator in the form of a header."""
    return _RNG.pack(*rng.getstate()[1]).hex()


class InputLine(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="input", omit_defaults=True
):
    """One input; ``out`` is the checksum of the actions, empty where there were none."""

    seq: int
    now: float
    input: str
    fields: dict[str, Any]
    out: str = ""
    raised: str = ""
    """The type of the error that the engine raised."""


class DigestLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="digest"):
    """The state after an input, at a time (seconds); see `speaker.engine.digest`."""

    seq: int
    now: float
    parts: dict[str, str]


class EndLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag="end"):
    """The last line."""

    seq: int
    reason: str


Line = Header | InputLine | DigestLine | EndLine

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Line)


def encode(line: Line) -> bytes:
    """Return a line with its line end."""
    return _encoder.encode(line) + b"\n"


def decode(line: bytes, number: int) -> Line:
    """Read a line. Raises `BadRecording`."""
    try:
        decoded: Line = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRecording(number, str(error)) from None
    return decoded


@final
class Passwords:
    """Numbers for passwords, in the order of their first use."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[Secret, int] = {}

    def hide(self, value: object) -> object:
        """Return the number of a password (an ``enc_hook``). Raises NotImplementedError."""
        if isinstance(value, Secret):
            return {"password": self._numbers.setdefault(value, len(self._numbers) + 1)}
        raise NotImplementedError(f"{type(value).__name__} has no form in a recording")


def _stand_in(kind: type, value: object) -> object:
    """Return a password in place of the password that was not recorded (a ``dec_hook``)."""
    if kind is Secret and isinstance(value, dict) and isinstance(value.get("password"), int):
        return Secret(f"password number {value['password']} of the recording")
    raise ValueError(f"{kind.__name__} has no such form in a recording")


def input_fields(item: Input, passwords: Passwords) -> dict[str, Any]:
    """Return the fields of an input as JSON has them."""
    match item:
        case BytesReceived(connection, data):
            return {"connection": connection, "data": data.hex()}
        case UpdateRoutes(instance, route_set, changes):
            return {
                "instance": instance,
                "route_set": route_set,
                "changes": {str(family): _runs(routes) for family, routes in changes.items()},
            }
        case _:
            fields: dict[str, Any] = msgspec.to_builtins(item, enc_hook=passwords.hide)
            return fields


def _runs(routes: Mapping[bytes, RouteAttributes | None]) -> list[dict[str, Any]]:
    """Return runs of prefixes with equal attributes, in the order of the routes."""
    return [
        {
            "attributes": None if attributes is None else _attributes(attributes),
            "prefixes": [nlri.hex() for nlri, _ in run],
        }
        for attributes, run in itertools.groupby(routes.items(), key=lambda route: route[1])
    ]


def _attributes(attributes: RouteAttributes) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(attributes)
    extended = fields["extended_communities"]
    return {**fields, "extended_communities": [community.hex() for community in extended]}


def read_input(line: InputLine, number: int) -> Input:
    """Return the input of a line. Raises `BadRecording`."""
    kind = INPUTS.get(line.input)
    if kind is None:
        raise BadRecording(number, f"{line.input!r} is no input of this version")
    try:
        return _read(kind, line.fields)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadRecording(number, f"{line.input}: {error}") from None


def _read(kind: type[Any], fields: dict[str, Any]) -> Input:
    if kind is BytesReceived:
        return BytesReceived(msgspec.convert(fields["connection"], int), _octets(fields["data"]))
    if kind is UpdateRoutes:
        return UpdateRoutes(
            msgspec.convert(fields["instance"], str),
            msgspec.convert(fields["route_set"], str | None),
            {
                Family.parse(family): {
                    _octets(nlri): attributes
                    for run in runs
                    for attributes in (_read_attributes(run["attributes"]),)
                    for nlri in run["prefixes"]
                }
                for family, runs in fields["changes"].items()
            },
        )
    if kind is SetPeer:
        config = fields["config"]
        of: type[PeerConfig | DynamicPeerConfig]
        of = DynamicPeerConfig if "prefix" in config else PeerConfig
        return SetPeer(
            msgspec.convert(fields["instance"], str),
            msgspec.convert(config, of, dec_hook=_stand_in),
        )
    item: Input = msgspec.convert(fields, kind)
    return item


def _octets(digits: str) -> bytes:
    return bytes.fromhex(digits)


def _read_attributes(fields: dict[str, Any] | None) -> RouteAttributes | None:
    if fields is None:
        return None
    extended = [_octets(community) for community in fields["extended_communities"]]
    return msgspec.convert(
        {**fields, "extended_communities": extended}, RouteAttributes, builtin_types=(bytes,)
    )
