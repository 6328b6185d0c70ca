"""One message as a JSON object. Pure; no message content raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from speaker.attribute import (
    ErrorHandling,
    PathAttributes,
    address_text,
    as_path_text,
    community_text,
)
from speaker.capability import (
    AddPath,
    Capability,
    ExtendedMessage,
    ExtendedNextHop,
    Fqdn,
    GracefulRestartCapability,
    Ignored,
    LongLivedGracefulRestart,
    Multiprotocol,
    RoleCapability,
    SoftwareVersion,
)
from speaker.errors import NotificationError
from speaker.iana import Afi, AttributeType, MessageType, Safi, describe_error
from speaker.message import (
    HEADER_SIZE,
    MARKER,
    Notification,
    RouteRefresh,
    Update,
    UpdateDecoder,
    check_header,
    decode_open,
    reset_attribute,
)
from speaker.negotiated import Negotiated
from speaker.nlri import Family, PathNlri, prefix_to_text
from speaker.peer.open_exchange import check_open

Json = dict[str, Any]
_ORIGINS = ("igp", "egp", "incomplete")
_AFIS = frozenset(Afi)
_SAFIS = frozenset(Safi)
_KINDS = {int(kind): kind.name.lower().replace("_", "-") for kind in MessageType}
_MODES = {1: "receive", 2: "send", 3: "both"}


def decode_message(octets: bytes, session: Negotiated) -> Json:
    """Decode one whole message, marker included."""
    if len(octets) < HEADER_SIZE:
        return {"kind": None, "incomplete": True, "octets": len(octets)}
    kind = _KINDS.get(octets[18]) if octets.startswith(MARKER) else None
    try:
        number, length = check_header(octets, 0, session.max_message_size)
        if length > len(octets):
            return {"kind": kind, "incomplete": True, "octets": len(octets), "length": length}
        body = octets[HEADER_SIZE:length]
        return {"kind": kind, **_BODIES[MessageType(number)](body, session)}
    except NotificationError as error:
        return _error(kind, error)


def _error(kind: str | None, error: NotificationError) -> Json:
    answer: Json = {
        "kind": kind,
        "error": {
            "code": error.code,
            "subcode": error.subcode,
            "data": error.data.hex(),
            "name": describe_error(error.code, error.subcode),
            "detail": error.detail,
        },
        "outcome": str(ErrorHandling.SESSION_RESET),
    }
    if kind == "update":
        attribute = reset_attribute(error)
        if attribute is None and error.subcode == 2 and len(error.data) > 1:
            attribute = error.data[1]
        if attribute:
            answer["attribute"] = attribute
    return answer


def _open(body: bytes, session: Negotiated) -> Json:
    message = decode_open(body)
    check_open(
        message,
        peer_asn=session.peer_asn,
        # BGP Identifiers within an AS must differ (RFC 6286), also where the AS is not configured.
        local_asn=session.local_asn or (0 if session.ebgp else message.asn),
        local_router_id=session.local_router_id,
        role=session.local_role if session.ebgp and not session.confederation else None,
    )
    answer: Json = {
        "version": 4,
        "asn": message.asn,
        "holdTime": message.hold_time,
        "routerID": address_text(message.router_id.to_bytes(4, "big")),
        "capabilities": [c.code for c in message.capabilities],
        "capabilityNames": [str(c) for c in message.capabilities],
    }
    for capability in message.capabilities:
        _capability(capability, answer)
    ignored = [c.code for c in message.capabilities if isinstance(c, Ignored)]
    if ignored:
        answer["ignoredCapabilities"] = ignored
    return answer


def _capability(capability: Capability, answer: Json) -> None:
    match capability:
        case Multiprotocol(family):
            answer.setdefault("multiprotocol", []).append(str(family))
        case ExtendedNextHop(entries):
            answer["extendedNextHop"] = [[str(family), afi] for family, afi in entries]
        case ExtendedMessage():
            answer["extendedMessage"] = True
        case RoleCapability(role):
            answer["role"] = role
        case GracefulRestartCapability(time, restarting, notification, families):
            answer["gracefulRestart"] = {
                "restartState": restarting,
                "notification": notification,
                "restartTime": time,
                # Each with its Forwarding State bit.
                "families": [[str(family), kept] for family, kept in families],
            }
        case AddPath(entries):
            answer.setdefault("addPath", {}).update(
                {
                    str(family): _MODES[mode]
                    for family, mode in entries
                    if family.afi in _AFIS and family.safi in _SAFIS
                }
            )
        case LongLivedGracefulRestart(stale):
            answer["llgr"] = {str(family): time for family, _, time in stale}
        case Fqdn(hostname, domain):
            answer["hostname"], answer["domainname"] = hostname, domain
        case SoftwareVersion(version):
            answer["softwareVersion"] = version
        case _:
            pass


def _keepalive(_: bytes, __: Negotiated) -> Json:
    return {}


def _notification(body: bytes, _: Negotiated) -> Json:
    if len(body) < 2:
        # RFC 4271 section 6.4: the session ends without a reply.
        return {"outcome": str(ErrorHandling.SESSION_RESET), "reply": "none"}
    message = Notification.decode(body)
    answer: Json = {
        "code": message.code,
        "subcode": message.subcode,
        "data": message.data.hex(),
        "name": describe_error(message.code, message.subcode),
    }
    if message.communication is not None:
        answer["shutdownCommunication"] = message.communication
    return answer


def _route_refresh(body: bytes, _: Negotiated) -> Json:
    message = RouteRefresh.decode(body)
    return {"family": str(message.family), "subtype": message.subtype}


def _prefixes(family: Family, nlri: list[bytes], paths: list[PathNlri]) -> list[str]:
    return [prefix_to_text(family, item) for item in nlri] + [
        prefix_to_text(family, item) for _, item in paths
    ]


def _update(body: bytes, session: Negotiated) -> Json:
    update = UpdateDecoder(session).decode(body)
    announce: list[str] = []
    withdraw: list[str] = []
    ids: list[int] = []
    gone_ids: list[int] = []
    families: list[str] = []
    next_hops: dict[str, str] = {}
    link_local = ""
    for reach in update.announced:
        link_local = link_local or reach.attributes.link_local_text
        families.append(str(reach.family))
        announce += _prefixes(reach.family, reach.nlri, reach.paths)
        ids += [identifier for identifier, _ in reach.paths]
        if reach.attributes.next_hop:
            next_hops[str(reach.family)] = reach.attributes.next_hop_text
    for unreach in update.withdrawn:
        families.append(str(unreach.family))
        withdraw += _prefixes(unreach.family, unreach.nlri, unreach.paths)
        gone_ids += [identifier for identifier, _ in unreach.paths]
    if update.outcome is ErrorHandling.TREAT_AS_WITHDRAW:
        withdraw, announce = announce + withdraw, []
        gone_ids, ids = ids + gone_ids, []
    answer: Json = {"announce": announce, "withdraw": withdraw}
    if ids:
        answer["pathIDs"] = ids
    if gone_ids:
        answer["withdrawPathIDs"] = gone_ids
    if families:
        answer["family"] = families[0]
    if next_hops:
        # The next hop of the NLRI field takes precedence.
        answer["nextHop"] = next_hops.get("ipv4-unicast") or next(iter(next_hops.values()))
        answer["nextHops"] = next_hops
    if update.end_of_rib is not None:
        answer["endOfRib"] = str(update.end_of_rib)
        answer["family"] = str(update.end_of_rib)
    if link_local:
        answer["linkLocalNextHop"] = link_local
    if update.decoded.present or update.decoded.attributes.unknown:
        answer |= _attributes(update.decoded.attributes, update.decoded.present)
    _add_faults(update, answer)
    if update.ignored:
        answer["ignoredFamilies"] = [str(family) for family in update.ignored]
    return answer


def _add_faults(update: Update, answer: Json) -> None:
    if not update.faults:
        return
    answer["outcome"] = str(update.outcome)
    strongest = max(update.faults, key=lambda fault: (fault.outcome, fault.attribute != 0))
    answer["attribute"] = int(strongest.attribute)
    answer["faults"] = [
        {"outcome": str(f.outcome), "attribute": int(f.attribute), "rule": f.rule}
        for f in update.faults
    ]
    answer["discarded"] = [
        int(f.attribute) for f in update.faults if f.outcome is ErrorHandling.ATTRIBUTE_DISCARD
    ]


def _attributes(  # noqa: C901  one line an attribute
    a: PathAttributes, present: frozenset[int]
) -> Json:
    answer: Json = {}
    if AttributeType.ORIGIN in present:
        answer["origin"] = _ORIGINS[a.origin]
    if AttributeType.AS_PATH in present:
        answer["asPath"] = as_path_text(a.as_path)
    if a.med is not None:
        answer["med"] = a.med
    if a.local_preference is not None:
        answer["localPreference"] = a.local_preference
    if a.atomic_aggregate:
        answer["atomicAggregate"] = True
    if a.aggregator is not None:
        answer["aggregator"] = {
            "asn": a.aggregator.asn,
            "address": address_text(a.aggregator.address),
        }
    if a.communities:
        answer["communities"] = [community_text(value) for value in a.communities]
    if a.large_communities:
        answer["largeCommunities"] = [":".join(map(str, value)) for value in a.large_communities]
    if a.extended_communities:
        answer["extendedCommunities"] = [value.hex() for value in a.extended_communities]
    if a.ipv6_extended_communities:
        answer["ipv6ExtendedCommunities"] = [value.hex() for value in a.ipv6_extended_communities]
    if a.originator_id is not None:
        answer["originatorID"] = address_text(a.originator_id)
    if a.cluster_list:
        answer["clusterList"] = [address_text(value) for value in a.cluster_list]
    if a.otc is not None:
        answer["otc"] = a.otc
    if a.unknown:
        answer["unknownAttributes"] = [
            {"code": item.type, "flags": item.flags, "value": item.value.hex()}
            for item in a.unknown
        ]
    return answer


_BODIES: dict[MessageType, Callable[[bytes, Negotiated], Json]] = {
    MessageType.OPEN: _open,
    MessageType.UPDATE: _update,
    MessageType.NOTIFICATION: _notification,
    MessageType.KEEPALIVE: _keepalive,
    MessageType.ROUTE_REFRESH: _route_refresh,
}
