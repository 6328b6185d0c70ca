"""ConfigMap (v1): the one in which the operator publishes the addresses of the cluster."""

from __future__ import annotations

import msgspec

from resources.meta import Resource


class ConfigMap(Resource, frozen=True):
    """One ConfigMap."""

    data: dict[str, str] = msgspec.field(default_factory=dict)
