"""BFD in the router's file: profiles, and the settings of a neighbour; times in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec.structs import asdict, replace

from resources.schema import did_you_mean
from speaker.api import BfdProfile
from waggle.commands.router.config.values import Value

Milliseconds = Annotated[int, msgspec.Meta(ge=10, le=60000)]


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

    def over(self, profile: BfdProfile) -> BfdProfile:
        """Return a profile with these settings in place of its own."""
        given = {
            name: value
            for name, value in asdict(self).items()
            if value is not None and name in BfdSettings.__struct_fields__
        }
        if "passive_mode" in given:
            given["passive"] = given.pop("passive_mode")
        return replace(profile, **given)


class NeighborBfd(BfdSettings, frozen=True):
    """The settings of a neighbour, which override its profile."""

    profile: str | None = None


def bfd_profile(given: str | NeighborBfd, profiles: Mapping[str, BfdSettings]) -> BfdProfile:
    """Return the settings of a neighbour. Raises ValueError for a profile that does not exist."""
    if isinstance(given, str):
        given = NeighborBfd(profile=given)
    profile = BfdProfile(name=given.profile or "")
    if given.profile is not None:
        if given.profile not in profiles:
            hint = did_you_mean(given.profile, profiles)
            raise ValueError(f"bfd: there is no profile {given.profile!r}{hint}")
        profile = profiles[given.profile].over(profile)
    return given.over(profile)
