"""The inputs of the core as lines of JSON, and back.

A line is ``{"seq": 17, "now": 3.25, "input": "BytesReceived", ...}`` with the fields of
`speaker.engine.inputs`. Octets from the wire are hex, so that `waggle decode` reads them. A password
becomes ``{"secret": 1}``: the number tells equal ones from others, and nothing else.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from speaker.api import DynamicPeerConfig, InvalidConfig, PeerConfig, RouteAttributes, Secret
from speaker.engine import inputs
from speaker.engine.inputs import BytesReceived, Input, SetPeer, UpdateRoutes
from speaker.nlri import Family

VERSION: Final = 1


class BadRecording(ValueError):  # noqa: N818  the name says what is wrong with what
    """A line that is no part of a recording: its number and the rule."""

    def __init__(self, line: int, rule: str) -> None:
        super().__init__(f"line {line}: {rule}")
        self.line = line
        self.rule = rule


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: with what the core began."""

    waggle: str
    """Version of the program."""
    recording: int = VERSION
    seed: int
    restarting: bool
    max_queue: int


class Digest(msgspec.Struct, frozen=True):
    """A summary of the core's state after an input: equal states have equal ones."""

    peers: dict[str, str]
    """Instance and peer -> state and counts."""
    tables: dict[str, int]
    """Instance and family -> prefixes in the Loc-RIB."""


_KINDS: Final[dict[str, type]] = {
    name: kind
    for name, kind in vars(inputs).items()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
}


class Writer:
    """Turns inputs into objects; remembers which passwords were equal."""

    def __init__(self) -> None:
        self._secrets: dict[Secret, int] = {}

    def __call__(self, item: Input) -> dict[str, Any]:
        """Return an input's fields as JSON has them, with its kind under ``input``."""
        fields: dict[str, Any]
        match item:
            case BytesReceived(connection, data):
                fields = {"connection": connection, "hex": data.hex()}
            case UpdateRoutes(instance, route_set, changes):
                fields = {
                    "instance": instance,
                    "route_set": route_set,
                    "changes": {
                        str(family): {
                            nlri.hex(): msgspec.to_builtins(attributes)
                            for nlri, attributes in routes.items()
                        }
                        for family, routes in changes.items()
                    },
                }
            case SetPeer(instance, config):
                dynamic = isinstance(config, DynamicPeerConfig)
                fields = {
                    "instance": instance,
                    "dynamic": dynamic,
                    "config": msgspec.to_builtins(config, enc_hook=self._hide),
                }
            case _:
                fields = msgspec.to_builtins(item)
        return {"input": type(item).__name__, **fields}

    def _hide(self, value: object) -> object:
        if isinstance(value, Secret):
            return {"secret": self._secrets.setdefault(value, len(self._secrets) + 1)}
        raise TypeError(f"{type(value).__name__} is not written")


def read(line: int, data: dict[str, Any]) -> Input:
    """Return the input of a line. Raises `BadRecording`."""
    kind = data.get("input")
    fields = {key: value for key, value in data.items() if key not in ("input", "seq", "now")}
    try:
        if kind == "BytesReceived":
            return BytesReceived(int(fields["connection"]), bytes.fromhex(fields["hex"]))
        if kind == "UpdateRoutes":
            return UpdateRoutes(
                fields["instance"],
                fields["route_set"],
                {
                    Family.parse(family): {
                        bytes.fromhex(nlri): None
                        if attributes is None
                        else msgspec.convert(attributes, RouteAttributes)
                        for nlri, attributes in routes.items()
                    }
                    for family, routes in fields["changes"].items()
                },
            )
        if kind == "SetPeer":
            of: type[DynamicPeerConfig | PeerConfig]
            of = DynamicPeerConfig if fields["dynamic"] else PeerConfig
            config = msgspec.convert(fields["config"], of, dec_hook=_secret)
            return SetPeer(fields["instance"], config)
        item: Input = msgspec.convert(fields, _KINDS[str(kind)])
    except KeyError as error:
        raise BadRecording(line, f"{kind}: {error} is missing or unknown") from None
    except (ValueError, TypeError, msgspec.ValidationError, InvalidConfig) as error:
        raise BadRecording(line, f"{kind}: {error}") from None
    return item


def _secret(kind: type, value: Any) -> Secret:  # noqa: ANN401  msgspec's hook
    if kind is not Secret or not isinstance(value, dict):
        raise TypeError(f"{kind.__name__} cannot be read")
    return Secret(f"not recorded, number {value.get('secret')}")
