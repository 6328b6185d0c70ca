"""The annotation of NetworkAttachmentDefinitions with the RouteAdvertisements of their network.

OVN-Kubernetes' agents read it: a network that is advertised has other NAT and other routes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from reconcilers.model import ObjectAnnotations, ObjectRef
from reconcilers.ovnk.attached_networks import Attachment
from resources.errors import INVALID_JSON
from resources.ovnk.kinds import NETWORK_ATTACHMENT
from resources.ovnk.networkattachmentdefinition import ROUTE_ADVERTISEMENTS as KEY
from resources.ovnk.networkattachmentdefinition import NetworkAttachmentDefinition


class Advertisers(NamedTuple):
    """RouteAdvertisements by the networks that they advertise."""

    accepted: Mapping[str, frozenset[str]]
    """By network: the names of its accepted RouteAdvertisements."""
    held: frozenset[str]
    """The names of RouteAdvertisements whose earlier state stays."""


def advertiser_annotations(
    attachments: Sequence[Attachment], advertisers: Advertisers, *, unchanged: bool
) -> Iterator[ObjectAnnotations]:
    """Yield the annotations of attachments with the RouteAdvertisements of their network."""
    for attachment in attachments:
        row, network = attachment.row, attachment.network
        present = _names(row)
        wanted = frozenset(advertisers.held & present) if present else frozenset()
        if network is not None:
            wanted |= advertisers.accepted.get(network.name, frozenset())
        if not wanted and KEY not in row.metadata.annotations:
            continue
        if not unchanged and present == wanted:
            continue
        if not wanted and present == wanted:
            continue
        ref = ObjectRef(NETWORK_ATTACHMENT.name, *row.key)
        text = msgspec.json.encode(sorted(wanted)).decode()
        yield ObjectAnnotations(ref, {KEY: text}, row.metadata.uid, take_over=True)


def _names(row: NetworkAttachmentDefinition) -> frozenset[str] | None:
    """Return the names in the annotation; None without one, and of one of another form."""
    text = row.metadata.annotations.get(KEY)
    if text is None:
        return None
    try:
        return frozenset(msgspec.json.decode(text, type=tuple[str, ...]))
    except INVALID_JSON:
        return None
