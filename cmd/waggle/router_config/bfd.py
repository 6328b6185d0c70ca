"""BFD in the router's file: profiles, and the settings of a neighbour; times in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec.structs import asdict, replace

from resources.given_file import NAMED_PIPE, is_named_pipe
from resources.schema import did_you_mean
from speaker.api import BfdProfile
from speaker.bfd.session_values import Key
from waggle.router_config.file_values import Value

Milliseconds = Annotated[int, msgspec.Meta(ge=10, le=60000)]


MAX_SECRET: Final = 20
"""Octets of a secret (RFC 5880 section 4.4)."""


NOT_OFFERED: Final = (
    "the type of authentication is SHA1: keyed MD5 is not offered, which RFC 5880 has for old systems"
    " alone, nor a password, which is readable on the wire"
)
KEYS_OF_OTHER_TYPES: Final = ("algorithm", "authentication", "md5", "password", "type")
"""Keys of `BfdKey` that it has not: what a file has that wants another type."""


class BfdKey(Value, frozen=True):
    """The key of a session; its secret is in a file, and in no other place of the configuration."""

    file: str
    id: Annotated[int, msgspec.Meta(ge=0, le=255)] = 1
    meticulous: bool = True

    def read(self) -> Key:
        """Read the secret. Raises ValueError, which names the file, and never holds the secret."""
        if is_named_pipe(self.file):
            raise ValueError(f"bfd.key.file: {self.file}: {NAMED_PIPE}")
        try:
            with Path(self.file).open("rb") as file:
                secret = file.read(MAX_SECRET + 3).rstrip(b"\r\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no path"
            raise ValueError(f"bfd.key.file: {self.file}: {reason}") from None
        if not 1 <= len(secret) <= MAX_SECRET:
            raise ValueError(
                f"bfd.key.file: {self.file}: a secret has 1 to {MAX_SECRET} octets, in one line"
            )
        return Key(self.id, secret, self.meticulous)


class BfdSettings(Value, frozen=True):
    """The settings of BFD sessions; absent settings have their defaults."""

    receive_interval: Milliseconds | None = None
    transmit_interval: Milliseconds | None = None
    detect_multiplier: Annotated[int, msgspec.Meta(ge=1, le=255)] | None = None
    echo_mode: bool | None = None
    echo_interval: Milliseconds | None = None
    passive_mode: bool | None = msgspec.field(name="passiveMode", default=None)
    minimum_ttl: Annotated[int, msgspec.Meta(ge=1, le=254)] | None = msgspec.field(
        name="minimumTTL", default=None
    )
    multihop: bool | None = None
    strict: bool | None = None
    key: BfdKey | None = None

    def over(self, profile: BfdProfile) -> BfdProfile:
        """Return a profile with these settings in place of its own.

        Without the key, which the speaker has no use for: what it is configured with is recorded.
        """
        given = {
            name: value
            for name, value in asdict(self).items()
            if value is not None and name in BfdSettings.__struct_fields__ and name != "key"
        }
        if "passive_mode" in given:
            given["passive"] = given.pop("passive_mode")
        return replace(profile, **given)


class NeighborBfd(BfdSettings, frozen=True):
    """The settings of a neighbour, which override its profile."""

    profile: str | None = None


def bfd_profile(given: str | NeighborBfd, profiles: Mapping[str, BfdSettings]) -> BfdProfile:
    """Return the settings of a neighbour. Raises ValueError for a profile that does not exist."""
    given, settings = _with_profile(given, profiles)
    if given.profile is not None and settings is None:
        hint = did_you_mean(given.profile, profiles)
        raise ValueError(f"bfd: there is no profile {given.profile!r}{hint}")
    profile = BfdProfile(name=given.profile or "")
    return given.over(profile if settings is None else settings.over(profile))


def bfd_key(given: str | NeighborBfd, profiles: Mapping[str, BfdSettings]) -> Key | None:
    """Read the key of a neighbour, its own or its profile's. Raises ValueError."""
    given, settings = _with_profile(given, profiles)
    key = given.key or (None if settings is None else settings.key)
    return None if key is None else key.read()


def _with_profile(
    given: str | NeighborBfd, profiles: Mapping[str, BfdSettings]
) -> tuple[NeighborBfd, BfdSettings | None]:
    if isinstance(given, str):
        given = NeighborBfd(profile=given)
    return given, profiles.get(given.profile or "")
