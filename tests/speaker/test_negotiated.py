"""What two OPENs agree on."""

from __future__ import annotations

from typing import Any

from speaker.capability import (
    AddPath,
    Capability,
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    Multiprotocol,
    RouteRefreshCapability,
)
from speaker.iana import Role
from speaker.negotiated import (
    ConfiguredParameters,
    Negotiated,
    negotiate,
    reconfigured,
    roles_match,
)
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

V4, V6 = Multiprotocol(IPV4_UNICAST), Multiprotocol(IPV6_UNICAST)


def agreed(
    ours: tuple[Capability, ...],
    theirs: tuple[Capability, ...],
    **fields: Any,  # noqa: ANN401
) -> Negotiated:
    """Negotiate with ordinary values for everything else."""
    values: dict[str, Any] = {
        "local_asn": 1,
        "peer_asn": 2,
        "local_hold_time": 90,
        "peer_hold_time": 90,
        "keepalive_time": 30,
        "local_router_id": 1,
        "peer_router_id": 2,
        **fields,
    }
    return negotiate(local_capabilities=ours, peer_capabilities=theirs, **values)


def test_a_capability_is_used_if_both_sides_have_it() -> None:
    full = (V4, FourOctetAs(1), ExtendedMessage(), RouteRefreshCapability())
    both = agreed(full, full)
    assert (both.as4, both.extended_message, both.route_refresh) == (True, True, True)
    assert both.max_message_size == 65535
    one = agreed(full, (V4,))
    assert (one.as4, one.extended_message, one.route_refresh) == (False, False, False)
    assert one.max_message_size == 4096


def test_families_are_common_to_both_speakers_and_ipv4_without_the_capability() -> None:
    """RFC 4760 section 8."""
    assert agreed((V4, V6), (V6,)).families == {IPV6_UNICAST}
    assert agreed((V4, V6), ()).families == {IPV4_UNICAST}
    assert agreed((V6,), (V4,)).families == frozenset()


def test_the_smaller_hold_time_counts_and_keepalives_come_three_times_as_often() -> None:
    """RFC 4271 section 4.2."""
    session = agreed((V4,), (V4,), peer_hold_time=30)
    assert (session.hold_time, session.keepalive_time) == (30, 10)
    none = agreed((V4,), (V4,), peer_hold_time=0)
    assert (none.hold_time, none.keepalive_time) == (0, 0)


def test_path_identifiers_are_used_where_one_side_sends_and_the_other_receives() -> None:
    """RFC 7911 section 4."""
    session = agreed((V4, AddPath(((IPV4_UNICAST, 1),))), (V4, AddPath(((IPV4_UNICAST, 3),))))
    assert session.add_path_receive == {IPV4_UNICAST}
    assert session.add_path_send == frozenset()


def test_an_ipv6_next_hop_is_for_families_of_both_capabilities() -> None:
    """RFC 8950 section 4."""
    ours = (V4, ExtendedNextHop(((IPV4_UNICAST, 2),)))
    assert agreed(ours, ours).extended_next_hop == {IPV4_UNICAST}
    assert agreed(ours, (V4,)).extended_next_hop == frozenset()


def test_the_same_as_is_internal() -> None:
    assert not agreed((V4,), (V4,), peer_asn=1).ebgp
    assert agreed((V4,), (V4,)).ebgp


def test_roles_are_permitted_in_pairs() -> None:
    """RFC 9234 section 4.2."""
    assert roles_match(Role.PROVIDER, Role.CUSTOMER)
    assert roles_match(Role.PEER, Role.PEER)
    assert not roles_match(Role.PROVIDER, Role.PROVIDER)
    assert not roles_match(9, 9)


OF_THE_OPENS = {
    "add_path_receive",
    "add_path_send",
    "as4",
    "enhanced_route_refresh",
    "extended_message",
    "extended_next_hop",
    "families",
    "graceful_notification",
    "hold_time",
    "keepalive_time",
    "peer_asn",
    "peer_graceful_restart",
    "peer_long_lived",
    "peer_role",
    "peer_router_id",
    "route_refresh",
}
"""What a session that has ended keeps until the next OPEN of the peer."""


def test_each_parameter_is_configured_or_of_the_opens() -> None:
    """A new one must be of one kind: routes kept without a session follow the configuration."""
    configured = {*ConfiguredParameters.__annotations__, "ebgp"}
    assert not configured & OF_THE_OPENS
    assert configured | OF_THE_OPENS == set(Negotiated.__struct_fields__)


def test_a_session_that_has_ended_takes_the_configured_parameters_and_no_others() -> None:
    full = (V4, V6, FourOctetAs(1), RouteRefreshCapability())
    before = agreed(full, full)
    parameters: ConfiguredParameters = {
        "local_asn": 2,
        "local_router_id": 7,
        "confederation": True,
        "enforce_first_as": False,
        "local_role": Role.PEER,
    }
    after = reconfigured(before, parameters)
    assert not after.ebgp
    assert {name: getattr(after, name) for name in parameters} == parameters
    assert all(getattr(after, name) == getattr(before, name) for name in OF_THE_OPENS)
