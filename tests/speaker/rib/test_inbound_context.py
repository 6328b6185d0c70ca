"""The inputs of the judgement of received paths: all of them, and no others."""

from __future__ import annotations

import msgspec
import pytest

from speaker.capability import GracefulRestartCapability, LongLivedGracefulRestart
from speaker.iana import IPV4_UNICAST
from speaker.negotiated import Negotiated
from speaker.rib.inbound_context import (
    ConnectionContext,
    InboundContext,
    SettingsContext,
    inbound_context,
)

UNRELATED = {
    "hold_time": 9,
    "keepalive_time": 3,
    "route_refresh": True,
    "extended_message": True,
    "add_path_send": frozenset({IPV4_UNICAST}),
    "peer_graceful_restart": GracefulRestartCapability(1),
    "graceful_notification": True,
    "peer_long_lived": LongLivedGracefulRestart(()),
}
"""Negotiated parameters by which no received path is judged."""
SETTINGS = SettingsContext(own_asns=frozenset(), allowas_in_origin=False, allowas_in=0)
CONNECTION = ConnectionContext(own_addresses=frozenset(), peer_is_local=False)
VALUES = {
    bool: lambda value: not value,
    int: lambda value: value + 1,
    frozenset: lambda _: frozenset(),
}


def other(value: object) -> object:
    """Return another value for a field of `Negotiated`."""
    change = VALUES.get(type(value), lambda _: 1)
    return change(value)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("field", Negotiated.__struct_fields__)
def test_every_negotiated_parameter_is_an_input_of_the_judgement(field: str) -> None:
    """A new one is, too, unless this test names it."""
    session = Negotiated(
        add_path_receive=frozenset({IPV4_UNICAST}), extended_next_hop=frozenset({IPV4_UNICAST})
    )
    changed = msgspec.structs.replace(
        session, **{field: UNRELATED.get(field, other(getattr(session, field)))}
    )
    assert changed != session

    def context(negotiated: Negotiated) -> InboundContext:
        return inbound_context(negotiated, SETTINGS, CONNECTION)

    assert (context(changed) == context(session)) is (field in UNRELATED)
