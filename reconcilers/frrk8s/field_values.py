"""Texts of an FRRConfiguration as values that are equal where they mean the same. Pure.

Addresses and prefixes in any spelling, host bits cut; ``default`` and no VRF; durations in seconds.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Sequence
from typing import Final, TypeAlias

from reconcilers.sliced_work import BATCH_PIECES, Pieces, Slices
from resources.addresses import canonical_address
from resources.errors import shortened
from resources.frrk8s.frrconfiguration import BfdProfile as ProfileSpec
from speaker.api import BfdProfile
from speaker.nlri import (
    Family,
    bound_prefixes,
    parsed_prefix,
    prefix_to_wire,
    remembered_prefixes,
)

Prefix: TypeAlias = tuple[Family, bytes]
"""A family, and a prefix of it as wire bytes."""
DEFAULT_VRF: Final = "default"
MED: Final = 0
"""MULTI_EXIT_DISC of configured routes: FRR sends it with what a ``network`` statement originates, so
that nodes with either are equal to a router that compares it (docs/frrk8s.md)."""
NANOSECONDS: Final = 1_000_000_000


def vrf_name(text: str) -> str:
    """Return the value of an FRRConfiguration's VRF field; the default VRF is the empty text."""
    return "" if text == DEFAULT_VRF else text


def shown_vrf(vrf: str) -> str:
    """Return the value of a VRF field as text for people: the default VRF has a name there."""
    return vrf or DEFAULT_VRF


def prefix(text: str) -> Prefix:
    """Return the value of a prefix field of an FRRConfiguration: its network. Raises `ValueError`.

    An object names most of its prefixes several times, and may have 100,000.
    """
    base, _, length = text.partition("/")
    if length.isascii() and length.isdigit():
        with contextlib.suppress(ValueError):
            return parsed_prefix(text)
        with contextlib.suppress(ValueError):
            canonical = canonical_address(base)
            return prefix_to_wire(str(ipaddress.ip_network(f"{canonical}/{length}", strict=False)))
    raise ValueError(f"{shortened(text)} is not a prefix such as 10.0.0.0/24")


def prefixes_of(texts: Sequence[str], pieces: Pieces) -> Slices[list[Prefix] | None]:
    """Return the values of an FRRConfiguration's prefix field, in slices; None if one is invalid."""
    networks: list[Prefix] = []
    for start in range(0, len(texts), BATCH_PIECES):
        some = texts[start : start + BATCH_PIECES]
        remembered = zip(remembered_prefixes(some), some, strict=True)
        try:
            networks += [known or prefix(text) for known, text in remembered]
        except ValueError:
            return None
        if pieces.fill_slice(len(some)):
            yield
    if len(texts) > BATCH_PIECES:
        # What is originated bounds them as well, the prefixes of all small objects together.
        bound_prefixes(texts)
    return networks


def address(text: str) -> str:
    """Return the value of an address field of an FRRConfiguration, canonical. Raises `ValueError`."""
    try:
        parsed = ipaddress.ip_address(canonical_address(text))
    except ValueError as error:
        message = str(error) if len(text) <= 64 else ""
        reason = message if repr(text) in message else f"{shortened(text)} is not an IP address"
        raise ValueError(reason) from None
    if parsed.is_multicast or parsed.is_unspecified or int(parsed) == 0xFFFFFFFF:
        raise ValueError(f"{shortened(text)} is not the address of a host")
    return str(parsed)


def bfd_profile(spec: ProfileSpec) -> BfdProfile:
    """Return a BFD profile's field values: a default that is written out equals an absent one."""
    return BfdProfile(
        name=spec.name,
        receive_interval=spec.receive_interval or 300,
        transmit_interval=spec.transmit_interval or 300,
        detect_multiplier=spec.detect_multiplier or 3,
        echo_interval=spec.echo_interval or 50,
        echo_mode=spec.echo_mode,
        passive=spec.passive_mode,
        minimum_ttl=spec.minimum_ttl or 254,
    )


def is_interface(text: str) -> bool:
    """True if the field value ``sourceaddress`` is the name of an interface, no address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return True
    return False
